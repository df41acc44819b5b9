// Begin and end of a text in checkpoints, and in a run that goes on from them.
#include "run/tokenizer_check.hpp"

#include "core/error.hpp"
#include "run/setup.hpp"
#include "support/catch.hpp"
#include "tokenizer/special_files.hpp"

using namespace t3d;

namespace {

CheckpointInfo checkpoint(const SpecialIds& kept, const std::string& input) {
  CheckpointInfo info{"runs/a/step-00000001", {}};
  info.state.texts["input"] = input;
  if (kept != SpecialIds()) info.state.texts[kSpecialText] = special_text(kept);
  return info;
}

const std::string kFresh = "[run]\nsteps = 2\n", kTuned = kFresh + "[init]\nfrom = \"hf:chat\"\n";

}  // namespace

TEST_CASE("a checkpoint whose special ids its model has not is refused by name") {
  CHECK(kept_special_ids(checkpoint({1, 2, 3, 0, {2, 4}}, kFresh), 5).eos == 2);
  CHECK(kept_special_ids(checkpoint({}, kFresh), 5) == SpecialIds());
  for (const SpecialIds& ids : {SpecialIds{1000000000, 2, 3, 0}, SpecialIds{1, 2, 3, 0, {2, 5}}})
    CHECK_THROWS_WITH(kept_special_ids(checkpoint(ids, kFresh), 5),
                      test::contains("runs/a/step-00000001: its special ids are damaged") &&
                          test::contains("is no token of 5"));
}

TEST_CASE("a model that began with fresh weights has no begin before a text unless it is said") {
  const SpecialIds unsaid{1, 2, -1, 0}, said{1, 2, -1, 0, {}, true};
  CHECK(special_ids_of(checkpoint(unsaid, kFresh), nullptr, 5).adds_bos == false);
  CHECK(special_ids_of(checkpoint(said, kFresh), nullptr, 5).adds_bos == true);
  CHECK(special_ids_of(checkpoint(unsaid, kTuned), nullptr, 5) == unsaid);
  CHECK(special_ids_of(checkpoint({}, kFresh), nullptr, 5) == SpecialIds());
  CheckpointInfo imported = checkpoint(unsaid, "");
  imported.state.texts[kWeightsOnlyText] = "chat";
  CHECK(special_ids_of(imported, nullptr, 5) == unsaid);
  // Made before checkpoints kept these.
  const auto tokenizer = make_json_tokenizer(R"({"added_tokens": [{"id": 0, "content": "<s>",
    "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
    "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"<s>": 0, "a": 1}}})");
  CHECK(special_ids_of(checkpoint({}, kFresh), tokenizer.get(), 2).adds_bos == false);
  CHECK(!special_ids_of(checkpoint({}, kTuned), tokenizer.get(), 2).adds_bos);
}

TEST_CASE("what the weights do not say of a text's begin, the training text does") {
  const SpecialIds unsaid{1, 2, -1, 0}, with{1, 2, -1, 0, {}, true},
      without{1, 2, -1, 0, {}, false};
  const auto kept = [](const SpecialIds& own, const SpecialIds& known, bool fresh) {
    return special_ids_of_run(own, known, fresh, 5);
  };
  CHECK(kept(unsaid, {}, true) == without);
  CHECK(kept(with, {}, true) == with);
  CHECK(kept(with, unsaid, true) == with);
  CHECK(kept(unsaid, unsaid, true) == without);
  CHECK(kept(unsaid, unsaid, false) == unsaid);
  CHECK(kept(without, unsaid, false) == without);
  CHECK(kept(without, with, false) == with);
  CHECK(kept({}, {}, true) == SpecialIds());
  // Both ends end a text; ids beyond the model are none of it.
  CHECK(kept({-1, 3, -1, -1}, unsaid, false) == SpecialIds{1, 3, -1, -1, {2, 3}});
  CHECK(kept({5, 3, 7, 0, {3, 9}}, {}, true) == SpecialIds{-1, 3, -1, 0, {3}});
}

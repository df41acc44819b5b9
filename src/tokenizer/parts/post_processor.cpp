#include "tokenizer/parts/post_processor.hpp"

#include <algorithm>

namespace t3d::tok {
namespace {

// ["[CLS]", 101]
std::int32_t id_of_pair(const JsonPart& part) {
  const auto both = part.list();
  if (both.size() != 2) part.fail("a token and its id are expected");
  return both[1].id();
}

}  // namespace

void PostProcessor::add(const JsonPart& part) {
  const std::string type = part.type();
  if (type == "Sequence") {
    part.only({"type", "processors"});
    for (const JsonPart& step : part.list("processors")) add(step);
  } else if (type == "TemplateProcessing") {
    steps_.push_back(template_of(part));
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    part.only({"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
    steps_.push_back({id_of_pair(part.at("cls")), kText, id_of_pair(part.at("sep"))});
  } else if (type == "ByteLevel") {
    part.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // offsets only
  } else {
    part.fail("post-processors of type {} are not known here", in_quotes(type));
  }
}

PostProcessor::Template PostProcessor::template_of(const JsonPart& part) {
  part.only({"type", "single", "pair", "special_tokens"});
  const JsonPart special = part.at("special_tokens");
  Template pieces;
  for (const JsonPart& piece : part.list("single")) {
    piece.only({"Sequence", "SpecialToken"});
    if (piece.has("Sequence")) {
      const JsonPart which = piece.at("Sequence").at("id");
      if (which.text() != "A") which.fail("{} is not the text: A is", in_quotes(which.text()));
      pieces.push_back(kText);
      continue;
    }
    const JsonPart name = piece.at("SpecialToken").at("id");
    if (!special.has(name.text().c_str()))
      name.fail("{} is not among special_tokens", in_quotes(name.text()));
    for (const JsonPart& id : special.at(name.text().c_str()).list("ids"))
      pieces.push_back(id.id());
  }
  return pieces;
}

std::vector<std::int32_t> PostProcessor::apply(std::vector<std::int32_t> ids) const {
  for (const Template& step : steps_) {
    std::vector<std::int32_t> out;
    for (const std::int32_t piece : step) {
      if (piece == kText)
        out.insert(out.end(), ids.begin(), ids.end());
      else
        out.push_back(piece);
    }
    ids = std::move(out);
  }
  return ids;
}

std::int32_t PostProcessor::front() const {
  for (const Template& step : steps_)
    if (!step.empty() && step.front() != kText) return step.front();
  return -1;
}

std::int32_t PostProcessor::back() const {
  for (const Template& step : steps_)
    if (!step.empty() && step.back() != kText) return step.back();
  return -1;
}

std::vector<std::int32_t> PostProcessor::added() const {
  std::vector<std::int32_t> all;
  for (const Template& step : steps_)
    std::copy_if(step.begin(), step.end(), std::back_inserter(all),
                 [](std::int32_t piece) { return piece != kText; });
  return all;
}

}  // namespace t3d::tok

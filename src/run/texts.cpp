#include "run/texts.hpp"

#include "config/data_lists.hpp"
#include "data/corpus_agreement.hpp"
#include "run/setup.hpp"

namespace t3d {
namespace {

class TextOpener {
 public:
  TextOpener(Communicator& world, Config& config)
      : world_(world), mates_(ranks_of_folder(world)), config_(config) {}

  std::shared_ptr<BatchSource> train() {
    if (config_.data.sources.empty()) return one(config_.data.train, config_.data.shuffle);
    std::vector<std::vector<TokenCard>> cards;
    for (const DataSource& source : config_.data.sources) cards.push_back(read(source.files));
    std::shared_ptr<BatchSource> made;
    all_or_none(world_, [&] { made = open_mixture(std::move(cards), config_); });
    return made;
  }
  std::shared_ptr<BatchSource> one(const std::vector<std::string>& files, bool shuffle) {
    std::vector<TokenCard> cards = read(files);
    std::shared_ptr<BatchSource> made;
    all_or_none(world_, [&] { made = open_corpus(std::move(cards), config_, shuffle); });
    return made;
  }

 private:
  std::vector<TokenCard> read(const std::vector<std::string>& files) {
    return share_token_cards(world_, *mates_, files, config_.data.format);
  }

  Communicator& world_;
  std::unique_ptr<Communicator> mates_;
  Config& config_;
};

}  // namespace

std::vector<const TokenSource*> Texts::validation_sets() const {
  std::vector<const TokenSource*> sets;
  for (const ValidationText& text : validation) sets.push_back(&text.source->tokens());
  return sets;
}

Texts open_texts(Communicator& world, Config& config) {
  TextOpener opener(world, config);
  Texts texts;
  texts.train = opener.train();
  agree_on_corpus(world, texts.train->tokens(),
                  config.data.sources.empty() ? "data.train" : "[[data.source]]");
  // Validation reads its text in order: the same samples at every evaluation.
  const DataConfig data = config.data;
  if (!data.valid.empty()) texts.validation.push_back({"", opener.one(data.valid, false)});
  for (const ValidationSet& set : data.validations)
    texts.validation.push_back({set.name, opener.one(set.files, false)});
  for (const ValidationText& text : texts.validation)
    agree_on_corpus(world, text.source->tokens(), text.key());
  return texts;
}

}  // namespace t3d

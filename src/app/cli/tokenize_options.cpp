// The words of tokenize.
#include <map>

#include "app/cli/command_options.hpp"

namespace t3d {
namespace {

void add_tokenize_text(CLI::App& sub, TokenizeOptions& options) {
  sub.add_option("--field", options.fields.text, "JSONL: the field with the text; default text")
      ->type_name("NAME");
  CLI::Option* prompt = sub.add_option("--prompt-field", options.fields.prompt,
                                       "JSONL: the field with what comes before the completion; it "
                                       "does not count in the loss")
                            ->type_name("NAME");
  CLI::Option* completion = sub.add_option("--completion-field", options.fields.completion,
                                           "JSONL: the field with the text after it")
                                ->type_name("NAME");
  prompt->needs(completion);
  completion->needs(prompt);
  sub.add_flag("--document-lines", options.document_lines,
               "text files: every line is a document, instead of every file");
  sub.add_flag("!--no-document-end", options.document_end,
               "do not put the tokenizer's id for the end after each document");
  sub.add_option("--eos", options.document_eos,
                 "the id or token for the end, instead of what the tokenizer's files say")
      ->type_name("TOKEN");
  sub.add_flag("--document-begin", options.document_begin,
               "put the tokenizer's id for the begin before each document");
  sub.add_option_function<std::string>(
         "--on-bad-line",
         [&options](const std::string& word) { options.skip_bad_lines = word == "skip"; },
         "JSONL: stop (default) at a bad line, or skip and count bad lines")
      ->check(CLI::IsMember({"stop", "skip"}));
}

}  // namespace

void add_tokenize(CLI::App& app, TokenizeCommand& command) {
  TokenizeOptions& options = command.options;
  CLI::App* sub = app.add_subcommand("tokenize", "make token files from texts");
  sub->add_option("inputs", command.inputs,
                  "text and JSONL files (also .zst), patterns, folders with such files")
      ->required()
      ->type_name("INPUT...");
  sub->add_option("-o,--output", command.prefix, "writes PREFIX-train.h5 and PREFIX-valid.h5")
      ->required()
      ->type_name("PREFIX");
  sub->add_option("--kind", options.kind,
                  "tokenizer: bytes (default), or bpe or unigram, which are trained on the text")
      ->check(CLI::IsMember({"bytes", "bpe", "unigram"}));
  sub->add_option("--vocab", options.vocab, "vocabulary of a trained tokenizer; default 8192")
      ->check(number_range(index_t{2}, index_t{10'000'000}));
  sub->add_option("--model", options.model_file, "use the tokenizer of this file or folder")
      ->excludes("--kind")
      ->excludes("--vocab")
      ->type_name("FILE");
  sub->add_option("--valid", options.valid_fraction,
                  "share of the text kept for validation; default 0")
      ->check(number_range(0.0, 1.0));
  add_tokenize_text(*sub, options);
  static const std::map<std::string, TokenOutput> outputs{{"hdf5", TokenOutput::hdf5},
                                                          {"megatron", TokenOutput::megatron},
                                                          {"llmc", TokenOutput::llmc}};
  sub->add_option_function<std::string>(
         "--format", [&options](const std::string& word) { options.output = outputs.at(word); },
         "format of the output: hdf5 (default), megatron (.bin, .idx) or llmc (.bin)")
      ->check(CLI::IsMember({"hdf5", "megatron", "llmc"}));
  sub->add_option("--threads", options.threads,
                  "threads of each process; 0 = all cores, under mpirun one")
      ->check(number_range(index_t{0}, index_t{4096}));
}

}  // namespace t3d

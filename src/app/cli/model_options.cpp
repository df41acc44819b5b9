// The words of the commands that use a trained model: eval, generate, inspect, export, import.
#include "app/cli/command_options.hpp"

namespace t3d {

void add_eval(CLI::App& app, CommandLine& line) {
  CLI::App* sub = app.add_subcommand("eval", "measure the loss of a checkpoint on a token file");
  sub->add_option("checkpoint", line.eval.checkpoint,
                  "run folder, folder of checkpoints, or checkpoint")
      ->required()
      ->type_name("DIR");
  sub->add_option("tokenfile", line.eval.token_file, "token file")->required()->type_name("FILE");
  sub->add_option("--sequences", line.eval.sequences, "how many sequences; 0 = all")
      ->check(number_range(index_t{0}, index_t{1'000'000'000'000}));
  sub->add_flag("--json", line.eval.json, "one JSON object, with every digit of the numbers");
  add_overrides(*sub, line);
}

void add_generate(CLI::App& app, CommandLine& line) {
  GenerateCommand& command = line.generate;
  CLI::App* sub = app.add_subcommand("generate", "continue texts with a checkpoint");
  sub->add_option("checkpoint", command.checkpoint,
                  "run folder, folder of checkpoints, or checkpoint")
      ->required()
      ->type_name("DIR");
  sub->add_option("--prompt", command.prompts, "text to continue; one for each --prompt")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_option(
         "--prompts", command.prompt_file,
         "a prompt on each line, or JSON lines with the field \"prompt\"; - = standard input")
      ->type_name("FILE");
  sub->add_option("--tokens", command.tokens, "how many tokens to add at most; default 256")
      ->check(number_range(index_t{0}, index_t{1'000'000'000}));
  sub->add_option("--stop", command.stops, "end before this text; one for each --stop")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  sub->add_flag("--ignore-eos", command.ignore_eos, "continue after the end of a document");
  sub->add_flag_callback(
      "--document-begin", [&command] { command.document_begin = true; },
      "put the id for the begin of a document before each prompt; by default as the model does");
  sub->add_flag_callback(
      "--no-document-begin", [&command] { command.document_begin = false; }, "do not put it there");
  sub->add_option("--batch", command.batch, "texts computed at a time; default 8")
      ->check(number_range(index_t{1}, index_t{1'000'000}));
  sub->add_option("--temperature", command.temperature,
                  "logits are divided by it: above 1 more random, below 1 less; default 1; 0 = as "
                  "--greedy")
      ->check(number_range(0.0, 1e6));
  sub->add_option("--top-k", command.top_k, "draw only from the k likeliest tokens; 0 = off")
      ->check(number_range(index_t{0}, index_t{1'000'000'000}));
  sub->add_option("--top-p", command.top_p,
                  "draw only from the likeliest tokens that together have probability p; 1 = off")
      ->check(number_range(1e-9, 1.0));
  sub->add_flag("--greedy", command.greedy, "always take the likeliest token");
  sub->add_option("--seed", command.seed, "of the random numbers; default 1")->check(integer_fault);
  sub->add_flag("--json", command.json, "one JSON object for each text, in one line");
  sub->add_flag("--no-stream", command.no_stream, "print a text when it is complete");
  add_overrides(*sub, line);
}

void add_inspect(CLI::App& app, InspectCommand& command) {
  CLI::App* sub = app.add_subcommand("inspect", "show what is in a checkpoint or token file");
  sub->add_option("path", command.path,
                  "checkpoint, run folder (its newest checkpoint) or token file")
      ->required()
      ->type_name("PATH");
  sub->add_flag("--verify", command.verify, "read everything and compare checksums");
  sub->add_flag("--all", command.all, "all tensors and texts, not only the first lines");
}

void add_export(CLI::App& app, CommandLine& line) {
  ExportCommand& command = line.exports;
  CLI::App* sub = app.add_subcommand("export", "write a checkpoint as a Hugging Face model");
  sub->add_option("checkpoint", command.checkpoint,
                  "run folder, folder of checkpoints, or checkpoint")
      ->required()
      ->type_name("DIR");
  sub->add_option("-o,--output", command.folder, "new folder for the model")
      ->required()
      ->type_name("DIR");
  sub->add_option("--format", command.format,
                  "hf (default): a whole model, adapters added; peft: the adapters alone")
      ->check(CLI::IsMember({"hf", "peft"}));
  sub->add_option("--dtype", command.dtype, "number format of the weights; default fp32")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "fp64"}));
  sub->add_option("--eos", command.eos,
                  "an id or token that ends a text, instead of those of the checkpoint; the first "
                  "one ends documents; one for each --eos")
      ->allow_extra_args(false)
      ->type_name("TOKEN");
  add_overrides(*sub, line);
}

void add_import(CLI::App& app, ImportCommand& command) {
  CLI::App* sub = app.add_subcommand("import", "make a checkpoint of a Hugging Face model");
  sub->add_option("folder", command.folder, "folder with config.json and safetensors")
      ->required()
      ->type_name("DIR");
  sub->add_option("-o,--output", command.dir, "folder for the checkpoint")
      ->required()
      ->type_name("DIR");
  sub->add_option("--context", command.context, "model.context of the checkpoint")
      ->check(number_range(index_t{1}, index_t{100'000'000}));
  sub->add_option("--vocab", command.vocab, "more tokens than the model has; their rows are fresh")
      ->check(number_range(index_t{1}, index_t{100'000'000}));
  sub->add_flag("--no-tokenizer", command.no_tokenizer, "take the weights alone");
}

}  // namespace t3d

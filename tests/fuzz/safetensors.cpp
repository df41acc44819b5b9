// Headers of safetensors and config.json of Hugging Face's models.
#include "io/weights/safetensors.hpp"

#include "fuzz/fuzz.hpp"
#include "io/weights/hf_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace t3d;
  const std::string_view text = test::as_text(data, size);
  // Files of several lengths, so that headers can be right.
  for (const index_t bytes : {index_t{0}, index_t{24}, index_t{1} << 40})
    test::expect_answer([&] { (void)parse_safetensors_header(text, 0, bytes, "fuzz"); });
  test::expect_answer([&] {
    const ModelConfig model = parse_hf_config(text, "fuzz");
    (void)hf_config_text(model, "float32", {});
  });
  return 0;
}

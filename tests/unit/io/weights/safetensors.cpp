// Files of safetensors: what was written is read, in every number format; damaged headers are
// refused.
#include "io/weights/safetensors.hpp"

#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

void write_file(const std::string& path, const std::string& header, const std::string& data,
                std::uint64_t length) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header << data;
}

/// The error of a file; "" where it is read.
std::string fault_of_file(const std::string& path) {
  try {
    const SafetensorsReader reader(path);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::io);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return error.what();
  }
}

/// The same of one with this header and so many bytes of numbers.
std::string fault_of(const std::string& header, std::size_t bytes) {
  const ScratchFolder folder("safetensors");
  const std::string path = folder.path() + "/x.safetensors";
  write_file(path, header, std::string(bytes, '\0'), header.size());
  return fault_of_file(path);
}

bool says(const std::string& fault, const std::string& words) {
  INFO(fault);
  return fault.find(words) != std::string::npos;
}

std::string entry(const char* dtype, const char* shape, int begin, int end) {
  return fmt::format(R"({{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", dtype, shape, begin,
                     end);
}

}  // namespace

TEST_CASE("tensors come back in every format, whole and in parts") {
  const ScratchFolder folder("safetensors");
  const std::string path = (folder.path() + "/all.safetensors");
  const std::vector<float> numbers{0.F, -1.5F, 0.33325195F, 65504.F, -0.F, 6.1035156e-05F};
  std::vector<SafetensorsWriter::Tensor> tensors;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    tensors.push_back({std::string(name_of(dtype)), dtype, {2, 3}});
  {
    SafetensorsWriter writer(path, tensors);
    for (int n = 0; n < 4; ++n) {
      writer.write(DType::f32, numbers.data(), 2);
      writer.write(DType::f32, numbers.data() + 2, 4);
    }
    CHECK_THROWS_AS(SafetensorsReader(path), Error);  // it has no name yet
    writer.finish();
  }
  const SafetensorsReader reader(path);
  CHECK(reader.tensors().size() == 4);
  for (const auto& [name, tensor] : reader.tensors()) {
    INFO(name);
    CHECK(tensor.shape == std::vector<index_t>{2, 3});
    for (index_t at = 0; at < 6; ++at) {
      const float exact = numbers[static_cast<std::size_t>(at)];
      float single = 1;
      double wide = 1;
      reader.read(tensor, at, 1, DType::f32, &single);
      reader.read(tensor, at, 1, DType::f64, &wide);
      const float want = name == "bf16" ? static_cast<float>(bf16(exact)) : exact;
      CHECK(std::memcmp(&single, &want, sizeof want) == 0);
      CHECK(wide == static_cast<double>(want));
    }
    std::vector<float> all(6);
    reader.read(tensor, 0, 6, DType::f32, all.data());
    CHECK(all[1] == -1.5F);
  }
}

TEST_CASE("a header that is wrong is refused, and its fault named") {
  const std::string good = entry("F32", "[2]", 0, 8);
  CHECK(fault_of("{\"a\":" + good + "}", 8).empty());
  CHECK(fault_of("{\"__metadata__\":{\"format\":\"pt\"},\"a\":" + good + "}", 8).empty());
  CHECK(fault_of("{}", 0).empty());
  CHECK(says(fault_of("{\"a\":" + good + "}", 7), "cut short"));
  CHECK(says(fault_of("{\"a\":" + good + "}", 9), "1 bytes follow"));
  CHECK(says(fault_of("{\"a\":" + good + ",\"b\":" + entry("F32", "[2]", 4, 12) + "}", 12),
             "overlaps"));
  CHECK(
      says(fault_of("{\"a\":" + good + ",\"b\":" + entry("F32", "[2]", 12, 20) + "}", 20), "hole"));
  CHECK(says(fault_of("{\"a\":" + good + ",\"a\":" + entry("F32", "[1]", 8, 12) + "}", 12),
             "a is there twice"));
  CHECK(says(fault_of("{\"a\":" + entry("F31", "[2]", 0, 8) + "}", 8), "F31"));
  CHECK(says(fault_of("{\"a\":" + entry("F32", "[3]", 0, 8) + "}", 8), "12 bytes by its shape"));
  CHECK(says(fault_of("{\"a\":" + entry("F32", "[-2]", 0, 8) + "}", 8), "no number from 0 on"));
  CHECK(says(fault_of("{\"a\":" + entry("F32", "[4611686018427387904,4]", 0, 8) + "}", 8),
             "more numbers than fit"));
  CHECK(says(fault_of("{\"a\":" + entry("F32", "2", 0, 8) + "}", 8), "of another kind"));
  CHECK(says(fault_of("{\"a\":" + entry("F32", "[2]", 8, 0) + "}", 8), "offsets"));
  CHECK(says(fault_of("{\"a\":{\"dtype\":\"F32\"}}", 8), "no shape"));
  CHECK(says(fault_of("{\"a\":3}", 8), "no dtype"));
  CHECK(says(fault_of("[]", 8), "no JSON object"));
  CHECK(says(fault_of("{\"a\":", 8), "no JSON"));
  CHECK(says(fault_of(std::string(1000, '['), 8), "nested too deeply"));
  const std::string far = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,)"
                          R"(9223372036854775807]}})";
  CHECK(says(fault_of(far, 8), "after its end"));
}

TEST_CASE("a length that cannot be is refused before it is believed") {
  const ScratchFolder folder("safetensors");
  const std::string path = (folder.path() + "/x.safetensors");
  for (const auto& [length, words] : {std::pair{std::uint64_t{100'000'001}, "at most 100000000"},
                                      std::pair{~std::uint64_t{0}, "at most 100000000"},
                                      std::pair{std::uint64_t{1000}, "ends within its header"}}) {
    write_file(path, "{}", "", length);
    CHECK(says(fault_of_file(path), words));
  }
  std::ofstream(path, std::ios::binary) << "abc";
  CHECK(says(fault_of_file(path), "shorter than 8 bytes"));
}

TEST_CASE("a writer that is not finished leaves nothing") {
  const ScratchFolder folder("safetensors");
  { const SafetensorsWriter writer((folder.path() + "/x.safetensors"), {{"a", DType::f32, {4}}}); }
  CHECK(list_folder(folder.path()).empty());
}

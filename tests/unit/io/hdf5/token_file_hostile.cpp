// Token files that somebody else made, or that were changed on purpose: every one gets Error(io)
// with its path, whatever its attributes and data sets are.
#include <hdf5.h>

#include <functional>
#include <limits>

#include "core/error.hpp"
#include "data/token_source.hpp"
#include "io/crc32c.hpp"
#include "io/hdf5/h5_file.hpp"
#include "io/hdf5/token_file.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tokenizer/tokenizer.hpp"

using namespace t3d;
using t3d::test::ScratchFolder;

namespace {

using Change = std::function<void(hid_t file)>;

void write(const std::string& path, TokenFileInfo info, const std::vector<std::int32_t>& ids) {
  TokenFileWriter writer(path, std::move(info));
  writer.append(ids.data(), std::ssize(ids));
  writer.finish();
}

/// A sound file, then changed by the HDF5 library itself.
std::string changed_file(const ScratchFolder& folder, const Change& change, index_t vocab = 300) {
  const std::string path = folder.path() + "/changed.h5";
  write(path, {vocab, "sentencepiece", "model", "a.txt", 7, 0}, {1, 2, 3, 4, 5});
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(file >= 0);
  change(file);
  REQUIRE(H5Fclose(file) >= 0);
  return path;
}

void check_refused(const std::string& path) {
  try {
    TokenFileReader(path).verify();
    FAIL("accepted");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ExitCode::io);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
  }
}

/// Replaces an attribute by one of `type` with `dims` (scalar when empty), filled from `data`.
Change attribute(const std::string& name, hid_t type, const std::vector<hsize_t>& dims,
                 const void* data) {
  return [=](hid_t file) {
    REQUIRE(H5Adelete(file, name.c_str()) >= 0);
    const hid_t space = dims.empty()
                            ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t made = H5Acreate2(file, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(made >= 0);
    if (data != nullptr) REQUIRE(H5Awrite(made, type, data) >= 0);
    H5Aclose(made);
    H5Sclose(space);
  };
}

/// Replaces a data set by one without contents.
Change dataset(const std::string& name, hid_t type, const std::vector<hsize_t>& dims) {
  return [=](hid_t file) {
    H5Ldelete(file, name.c_str(), H5P_DEFAULT);
    const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const std::vector<hsize_t> chunk(dims.size(), 1);
    if (!dims.empty()) H5Pset_chunk(creation, static_cast<int>(dims.size()), chunk.data());
    const hid_t made =
        H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    REQUIRE(made >= 0);
    H5Dclose(made);
    H5Pclose(creation);
    H5Sclose(space);
  };
}

hid_t text_of(std::size_t bytes) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, bytes);
  return type;
}

}  // namespace

TEST_CASE("attributes that are arrays or of another class are refused") {
  const ScratchFolder folder("hostile_attributes");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const std::vector<std::int64_t> many(4000, -1);
  const std::vector<double> real(1, 300.0);
  const std::string letters(4000, 'x');
  const char* pointer = "transformer3d tokens";
  const hid_t text = text_of(20), pointers = text_of(H5T_VARIABLE);
  for (const std::string name :
       {"version", "vocab", "text_bytes", "crc32c", "documents", "bos", "unknown"}) {
    CAPTURE(name);
    check_refused(changed_file(folder, attribute(name, H5T_NATIVE_INT64, {4000}, many.data())));
    check_refused(changed_file(folder, attribute(name, H5T_NATIVE_INT64, {2, 2}, many.data())));
    check_refused(changed_file(folder, attribute(name, H5T_NATIVE_DOUBLE, {}, real.data())));
    check_refused(changed_file(folder, attribute(name, text, {}, letters.data())));
    const hsize_t each = 4000;
    const hid_t array = H5Tarray_create2(H5T_NATIVE_INT64, 1, &each);
    check_refused(changed_file(folder, attribute(name, array, {}, many.data())));
    H5Tclose(array);
  }
  for (const std::string name : {"format", "tokenizer", "source"}) {
    CAPTURE(name);
    check_refused(changed_file(folder, attribute(name, text, {100}, letters.data())));
    check_refused(changed_file(folder, attribute(name, pointers, {}, &pointer)));
    check_refused(changed_file(folder, attribute(name, H5T_NATIVE_INT64, {}, many.data())));
    check_refused(changed_file(folder, [&](hid_t file) { H5Adelete(file, name.c_str()); }));
  }
  H5Tclose(text);
  H5Tclose(pointers);
}

TEST_CASE("data sets of another shape or kind are refused") {
  const ScratchFolder folder("hostile_datasets");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  for (const std::string name : {"tokens", "block_crc32c", "tokenizer_model"}) {
    CAPTURE(name);
    check_refused(changed_file(folder, dataset(name, H5T_STD_U16LE, {5, 1})));
    check_refused(changed_file(folder, dataset(name, H5T_STD_U16LE, {1, 1, 1, 1, 1})));
    check_refused(changed_file(folder, dataset(name, H5T_STD_U16LE, {hsize_t{1} << 40})));
    check_refused(changed_file(folder, dataset(name, H5T_STD_U16LE, {hsize_t{1} << 62})));
    check_refused(changed_file(folder, dataset(name, H5T_STD_U16LE, {})));
    check_refused(changed_file(folder, [&](hid_t file) {
      H5Ldelete(file, name.c_str(), H5P_DEFAULT);
      H5Gclose(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }));
  }
}

TEST_CASE("so many tokens that their bytes overflow to 0 are refused") {
  const ScratchFolder folder("hostile_overflow");
  // 2^62 ids of 4 bytes are 2^64 = 0 bytes: no block to check, and a sound header.
  const index_t vocab = 70000, tokens = index_t{1} << 62;
  std::uint32_t crc = crc32c(fmt::format("{}\n{}\n{}\n{}\n{}\n0\n0\n-1\n-1\n-1\n-1\n", vocab,
                                         "sentencepiece", "a.txt", 7, tokens));
  const auto header = static_cast<std::int64_t>(crc32c(std::string_view("model"), crc));
  check_refused(changed_file(
      folder,
      [&](hid_t file) {
        dataset("tokens", H5T_STD_U32LE, {static_cast<hsize_t>(tokens)})(file);
        H5Ldelete(file, "block_crc32c", H5P_DEFAULT);
        attribute("crc32c", H5T_NATIVE_INT64, {}, &header)(file);
      },
      vocab));
}

TEST_CASE("numbers that no token file can have are refused, also with a sound checksum") {
  const ScratchFolder folder("hostile_numbers");
  const std::string path = folder.path() + "/t.h5";
  for (const index_t vocab : {index_t{0}, index_t{-5}, index_t{1} << 40}) {
    write(path, {vocab, "bytes", "", "", 0, 0}, {});
    check_refused(path);
  }
  write(path, {256, "bytes", "", "", -1, 0}, {1});
  check_refused(path);
}

TEST_CASE("versions of the future are refused by name") {
  const ScratchFolder folder("hostile_version");
  const std::int64_t version = 4;
  CHECK_THROWS_WITH(
      TokenFileReader(changed_file(folder, attribute("version", H5T_NATIVE_INT64, {}, &version))),
      t3d::test::contains("version 4, and this program reads up to version 3"));
}

TEST_CASE("a token file whose tokenizer is no model is named") {
  const ScratchFolder folder("hostile_model");
  const std::string path = folder.path() + "/t.h5";
  write(path, {300, "sentencepiece", "no model", "", 0, 0}, {1});
  CHECK_NOTHROW(TokenFileReader(path).verify());
  CHECK_THROWS_WITH(load_tokenizer(path), t3d::test::contains(path));
}

#include "io/hdf5/h5_file.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"

namespace t3d {
namespace {

std::recursive_mutex& library_lock() {
  static std::recursive_mutex lock;
  return lock;
}

/// Keeps the innermost message: it is what went wrong, the others are who asked.
herr_t keep_innermost(unsigned depth, const H5E_error2_t* entry, void* out) {
  if (depth == 0 && entry->desc != nullptr) *static_cast<std::string*>(out) = entry->desc;
  return 0;
}

/// `refused`: the system did not let the library read or write.
std::string reason(bool& refused) {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, &text);
  const std::string key = "error message = '";  // the system's own words, when it was a system call
  const auto at = text.find(key);
  refused = at != std::string::npos;
  if (refused) {
    text.erase(0, at + key.size());
    text.erase(std::min(text.find('\''), text.size()));
  }
  return text.empty() ? "HDF5 gives no reason" : text;
}

[[noreturn]] void fail(const std::string& what) {
  bool refused = false;
  const std::string why = reason(refused);
  throw Error(ExitCode::io, fmt::format("cannot {}: {}", what, why), refused);
}

/// Files that HDF5 1.10 and everything newer reads; no advisory locks, which parallel file systems
/// often refuse (the manifest, not a lock, says that a file is whole).
H5Id file_access() {
  H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_V110), "set HDF5 version");
  h5_check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "set HDF5 properties");
  h5_check(H5Pset_meta_block_size(access.get(), 256 << 10), "set HDF5 properties");
#if H5_VERSION_GE(1, 10, 7)
  h5_check(H5Pset_file_locking(access.get(), false, true), "set HDF5 properties");
#endif
  return access;
}

H5Id make_space(index_t rows, index_t cols, bool vector) {
  const std::array<hsize_t, 2> dims{static_cast<hsize_t>(rows), static_cast<hsize_t>(cols)};
  return {H5Screate_simple(vector ? 1 : 2, vector ? &dims[1] : dims.data(), nullptr), H5Sclose,
          "create an HDF5 space"};
}

void select(const H5Id& space, const Box& box, bool vector) {
  const std::array<hsize_t, 2> start{static_cast<hsize_t>(box.row0),
                                     static_cast<hsize_t>(box.col0)};
  const std::array<hsize_t, 2> count{static_cast<hsize_t>(box.rows),
                                     static_cast<hsize_t>(box.cols)};
  h5_check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start[vector ? 1 : 0], nullptr,
                               &count[vector ? 1 : 0], nullptr),
           "select in an HDF5 space");
}

}  // namespace

H5Guard::H5Guard() : lock_(library_lock()) {
  // A file whose writes failed stays half open inside the library; its clean-up at exit would flush
  // it once more and crash (1.10). Every file of ours is closed, and checked, long before.
  static const herr_t no_exit_handler = H5dont_atexit();
  (void)no_exit_handler;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

H5Id::H5Id(hid_t id, Close closer, const std::string& what) : id_(id), close_(closer), what_(what) {
  if (id < 0) fail(what);
}

H5Id& H5Id::operator=(H5Id&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  std::swap(what_, other.what_);
  return *this;
}

H5Id::~H5Id() {
  if (id_ < 0) return;
  const H5Guard guard;
  close_(id_);
}

void H5Id::close() {
  const H5Guard guard;
  const hid_t id = std::exchange(id_, -1);
  if (id >= 0 && close_(id) < 0) fail(what_);
}

void h5_check(herr_t status, const std::string& what) {
  if (status < 0) fail(what);
}

hid_t h5_type(DType type) {
  const H5Guard guard;
  switch (type) {
    case DType::f64: return H5T_IEEE_F64LE;
    case DType::f32: return H5T_IEEE_F32LE;
    case DType::i32: return H5T_STD_I32LE;
    case DType::bf16:
    case DType::f16: break;
  }
  throw_error(ExitCode::internal, "{} is never stored", name_of(type));
}

H5Id h5_link_with_parents() {
  H5Id link(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_create_intermediate_group(link.get(), 1), "set HDF5 properties");
  return link;
}

H5File H5File::create(const std::string& path) {
  const H5Guard guard;
  const H5Id access = file_access();
  // No times inside: the same contents make the same file.
  const H5Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_obj_track_times(creation.get(), false), "set HDF5 properties");
  return {H5Id(H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation.get(), access.get()), H5Fclose,
               "write " + path),
          path};
}

H5File H5File::open(const std::string& path) {
  const H5Guard guard;
  const H5Id access = file_access();
  return {H5Id(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, "read " + path),
          path};
}

H5File::~H5File() = default;

std::string H5File::what(const char* verb, const std::string& name) const {
  return fmt::format("{} {} in {}", verb, name, path_);
}

H5Id H5File::create_contiguous(const std::string& name, hid_t type, index_t rows, index_t cols,
                               bool vector) const {
  const H5Guard guard;
  const H5Id space = make_space(rows, cols, vector);
  const H5Id link = h5_link_with_parents();
  const H5Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "set HDF5 properties");
  h5_check(H5Pset_obj_track_times(creation.get(), false), "set HDF5 properties");
  h5_check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "set HDF5 properties");
  return {H5Dcreate2(file_.get(), name.c_str(), type, space.get(), link.get(), creation.get(),
                     H5P_DEFAULT),
          H5Dclose, what("create", name)};
}

void H5File::write_rows(const H5Id& dataset, hid_t type, index_t first_row, index_t rows,
                        index_t cols, bool vector, const void* data) const {
  const H5Guard guard;
  const H5Id file_space(H5Dget_space(dataset.get()), H5Sclose, "read an HDF5 space");
  select(file_space, {first_row, 0, rows, cols}, vector);
  const H5Id memory_space = make_space(rows, cols, vector);
  h5_check(H5Dwrite(dataset.get(), type, memory_space.get(), file_space.get(), H5P_DEFAULT, data),
           "write " + path_);
}

index_t H5File::offset_of(const H5Id& dataset) const {
  const H5Guard guard;
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) fail("place a data set in " + path_);
  return static_cast<index_t>(offset);
}

void H5File::create_virtual(const std::string& name, DType type, index_t rows, index_t cols,
                            bool vector, const std::vector<H5Source>& sources) const {
  const H5Guard guard;
  const H5Id space = make_space(rows, cols, vector);
  const H5Id link = h5_link_with_parents();
  const H5Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "create HDF5 properties");
  // What readers get where a source is not found: nothing that passes for a weight.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto lowest = std::numeric_limits<std::int32_t>::min();
  const bool integer = type == DType::i32;
  h5_check(H5Pset_fill_value(creation.get(), integer ? H5T_NATIVE_INT32 : H5T_NATIVE_DOUBLE,
                             integer ? static_cast<const void*>(&lowest) : &nan),
           "set HDF5 properties");
  for (const H5Source& source : sources) {
    select(space, source.box, vector);
    const H5Id from = make_space(source.box.rows, source.box.cols, vector);
    h5_check(H5Pset_virtual(creation.get(), space.get(), source.file.c_str(),
                            source.dataset.c_str(), from.get()),
             what("map", name));
  }
  H5Id dataset(H5Dcreate2(file_.get(), name.c_str(), h5_type(type), space.get(), link.get(),
                          creation.get(), H5P_DEFAULT),
               H5Dclose, what("create", name));
  dataset.close();
}

H5Id H5File::create_growing(const std::string& name, hid_t type, index_t chunk) const {
  const H5Guard guard;
  const hsize_t none = 0, most = H5S_UNLIMITED, each = static_cast<hsize_t>(chunk);
  const H5Id space(H5Screate_simple(1, &none, &most), H5Sclose, "create an HDF5 space");
  const H5Id creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_chunk(creation.get(), 1, &each), "set HDF5 properties");
  h5_check(H5Pset_obj_track_times(creation.get(), false), "set HDF5 properties");
  return {H5Dcreate2(file_.get(), name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(),
                     H5P_DEFAULT),
          H5Dclose, what("create", name)};
}

void H5File::append(const H5Id& dataset, hid_t type, index_t count, const void* data) const {
  const H5Guard guard;
  const index_t old = length_of(dataset);
  const auto size = static_cast<hsize_t>(old + count);
  h5_check(H5Dset_extent(dataset.get(), &size), "write " + path_);
  const H5Id file_space(H5Dget_space(dataset.get()), H5Sclose, "read an HDF5 space");
  select(file_space, {0, old, 1, count}, true);
  const H5Id memory_space = make_space(1, count, true);
  h5_check(H5Dwrite(dataset.get(), type, memory_space.get(), file_space.get(), H5P_DEFAULT, data),
           "write " + path_);
}

H5Id H5File::open_dataset(const std::string& name) const {
  const H5Guard guard;
  // No chunk cache: a read of a few numbers must not fetch the whole chunk.
  const H5Id access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, "create HDF5 properties");
  h5_check(H5Pset_chunk_cache(access.get(), 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT), "set a cache");
  return {H5Dopen2(file_.get(), name.c_str(), access.get()), H5Dclose, what("open", name)};
}

index_t H5File::length_of(const H5Id& dataset) const {
  const H5Guard guard;
  const H5Id space(H5Dget_space(dataset.get()), H5Sclose, "read an HDF5 space");
  // The selections of read_range and append are 1-D: they would read past their numbers here.
  if (H5Sget_simple_extent_ndims(space.get()) != 1)
    throw_error(ExitCode::io, "cannot read {}: a data set is not one-dimensional", path_);
  const hssize_t length = H5Sget_simple_extent_npoints(space.get());
  if (length < 0) throw_error(ExitCode::io, "cannot read {}: a data set is too long", path_);
  return length;
}

void H5File::read_range(const H5Id& dataset, hid_t type, index_t first, index_t count,
                        void* out) const {
  const H5Guard guard;
  const H5Id file_space(H5Dget_space(dataset.get()), H5Sclose, "read an HDF5 space");
  select(file_space, {0, first, 1, count}, true);
  const H5Id memory_space = make_space(1, count, true);
  h5_check(H5Dread(dataset.get(), type, memory_space.get(), file_space.get(), H5P_DEFAULT, out),
           "read " + path_);
}

bool H5File::has(const std::string& name) const {
  const H5Guard guard;
  const htri_t there = H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT);
  h5_check(there, "read " + path_);
  return there > 0;
}

bool H5File::has_attribute(const std::string& name) const {
  const H5Guard guard;
  const htri_t there = H5Aexists(file_.get(), name.c_str());
  h5_check(there, "read " + path_);
  return there > 0;
}

void H5File::close() { file_.close(); }

}  // namespace t3d

// The texts and attributes of an HDF5 file.
#include <algorithm>

#include "core/error.hpp"
#include "io/hdf5/h5_file.hpp"

namespace t3d {
namespace {

constexpr std::size_t kLongestText = 1 << 20;  // bytes of an attribute

H5Id text_type(std::size_t length) {
  H5Id type(H5Tcopy(H5T_C_S1), H5Tclose, "create an HDF5 type");
  h5_check(H5Tset_size(type.get(), std::max<std::size_t>(length, 1)), "size an HDF5 text");
  h5_check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set an HDF5 text's code");
  h5_check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "set an HDF5 text's padding");
  return type;
}

/// One value of one class: anything else would not fit where the caller reads it to.
H5Id open_scalar(hid_t file, const std::string& name, H5T_class_t wanted, const std::string& what) {
  H5Id attribute(H5Aopen(file, name.c_str(), H5P_DEFAULT), H5Aclose, what);
  const H5Id space(H5Aget_space(attribute.get()), H5Sclose, what);
  const H5Id type(H5Aget_type(attribute.get()), H5Tclose, what);
  if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR || H5Tget_class(type.get()) != wanted)
    throw_error(ExitCode::io, "cannot {}: it is not one {}", what,
                wanted == H5T_INTEGER ? "integer" : "text");
  return attribute;
}

}  // namespace

void H5File::write_text(const std::string& name, const std::string& text) const {
  const H5Guard guard;
  const H5Id type = text_type(text.size());
  const H5Id space(H5Screate(H5S_SCALAR), H5Sclose, "create an HDF5 space");
  const H5Id link = h5_link_with_parents();
  H5Id dataset(H5Dcreate2(file_.get(), name.c_str(), type.get(), space.get(), link.get(),
                          H5P_DEFAULT, H5P_DEFAULT),
               H5Dclose, what("create", name));
  h5_check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()),
           what("write", name));
  dataset.close();
}

void H5File::write_attribute(const std::string& name, std::int64_t value) const {
  const H5Guard guard;
  const H5Id space(H5Screate(H5S_SCALAR), H5Sclose, "create an HDF5 space");
  const H5Id attribute(
      H5Acreate2(file_.get(), name.c_str(), H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose, what("create", name));
  h5_check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), what("write", name));
}

void H5File::write_attribute(const std::string& name, const std::string& text) const {
  const H5Guard guard;
  const H5Id type = text_type(text.size());
  const H5Id space(H5Screate(H5S_SCALAR), H5Sclose, "create an HDF5 space");
  const H5Id attribute(
      H5Acreate2(file_.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose, what("create", name));
  h5_check(H5Awrite(attribute.get(), type.get(), text.data()), what("write", name));
}

std::int64_t H5File::read_integer(const std::string& name) const {
  const H5Guard guard;
  const H5Id attribute = open_scalar(file_.get(), name, H5T_INTEGER, what("read", name));
  std::int64_t value = 0;
  h5_check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), what("read", name));
  return value;
}

std::string H5File::read_string(const std::string& name) const {
  const H5Guard guard;
  const H5Id attribute = open_scalar(file_.get(), name, H5T_STRING, what("read", name));
  const H5Id type(H5Aget_type(attribute.get()), H5Tclose, what("read", name));
  // A text of variable length would be read as a pointer.
  const std::size_t bytes = H5Tget_size(type.get());
  if (H5Tis_variable_str(type.get()) != 0 || bytes > kLongestText)
    throw_error(ExitCode::io, "cannot {}: it is not a text of fixed length up to {} bytes",
                what("read", name), kLongestText);
  std::string text(bytes, '\0');
  h5_check(H5Aread(attribute.get(), type.get(), text.data()), what("read", name));
  text.erase(text.find_last_not_of('\0') + 1);  // padding: HDF5 has no text of length 0
  return text;
}

}  // namespace t3d

// The texts and attributes of an HDF5 file.
#include <algorithm>

#include "io/hdf5/h5_file.hpp"

namespace t3d {
namespace {

H5Id text_type(std::size_t length) {
  H5Id type(H5Tcopy(H5T_C_S1), H5Tclose, "create an HDF5 type");
  h5_check(H5Tset_size(type.get(), std::max<std::size_t>(length, 1)), "size an HDF5 text");
  h5_check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "set an HDF5 text's code");
  h5_check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "set an HDF5 text's padding");
  return type;
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
  const H5Id attribute(H5Aopen(file_.get(), name.c_str(), H5P_DEFAULT), H5Aclose,
                       what("read", name));
  std::int64_t value = 0;
  h5_check(H5Aread(attribute.get(), H5T_NATIVE_INT64, &value), what("read", name));
  return value;
}

std::string H5File::read_string(const std::string& name) const {
  const H5Guard guard;
  const H5Id attribute(H5Aopen(file_.get(), name.c_str(), H5P_DEFAULT), H5Aclose,
                       what("read", name));
  const H5Id type(H5Aget_type(attribute.get()), H5Tclose, what("read", name));
  std::string text(H5Tget_size(type.get()), '\0');
  h5_check(H5Aread(attribute.get(), type.get(), text.data()), what("read", name));
  return text;
}

}  // namespace t3d

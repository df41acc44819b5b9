// Damage inside of an HDF5 file that the library itself does not see.
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <string>

#include "support/catch.hpp"

namespace t3d::test {

/// Changes the first element's lowest bit of a 1-D data set of integers.
inline void change_first_byte(const std::string& path, const std::string& name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  REQUIRE(file >= 0);
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  REQUIRE(dataset >= 0);
  const hsize_t first = 0, count = 1;
  const hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(1, &count, nullptr);
  REQUIRE(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &count, nullptr) >= 0);
  std::uint64_t value = 0;
  REQUIRE(H5Dread(dataset, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &value) >= 0);
  value ^= 1;
  REQUIRE(H5Dwrite(dataset, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &value) >= 0);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(dataset);
  REQUIRE(H5Fclose(file) >= 0);
}

}  // namespace t3d::test

/// @file
/// The memory of a BAR that another process maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.hpp"
#include "base/mapping.hpp"

namespace rio::cardsim {

/// Owns descriptor and mapping. Functions return 0 or -errno.
class SharedBar {
 public:
  /// Make a file of `len_bytes` zeros, or empty an existing one. It stays when the object goes.
  /// Reports errors on stderr.
  [[nodiscard]] static int of_file(const std::string& path, size_t len_bytes, SharedBar* out);
  /// Make anonymous memory to be sent to another process, sealed so that it cannot shrink.
  [[nodiscard]] static int anonymous(size_t len_bytes, SharedBar* out);

  [[nodiscard]] uint8_t* va() const { return memory_.va(); }
  [[nodiscard]] size_t len_bytes() const { return memory_.len_bytes(); }
  /// The descriptor, which stays this object's.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The card's word GEN_REQ, which the host writes.
  [[nodiscard]] uint32_t gen_req() const;

 private:
  base::Fd fd_;
  base::Mapping memory_;
};

}  // namespace rio::cardsim

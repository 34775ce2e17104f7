/// @file
/// Memory of a BAR that another process maps.
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
  /// A file of `len_bytes` zeros, which is made, or emptied if it is there. Stays when the object
  /// goes. Tells on stderr what went wrong.
  [[nodiscard]] static int of_file(const std::string& path, size_t len_bytes, SharedBar* out);
  /// Anonymous memory to be sent to another process. It is sealed: it cannot be made smaller.
  [[nodiscard]] static int anonymous(const char* name, size_t len_bytes, SharedBar* out);

  [[nodiscard]] uint8_t* va() const { return memory_.va(); }
  [[nodiscard]] size_t len_bytes() const { return memory_.len_bytes(); }
  /// The object's.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  base::Fd fd_;
  base::Mapping memory_;
};

/// The card's word GEN_REQ, which the host writes.
[[nodiscard]] uint32_t gen_req_of(const SharedBar& bar);

}  // namespace rio::cardsim

/// @file
/// Memory of a BAR that another process maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rio::cardsim {

/// Owns descriptor and mapping. Functions return 0 or -errno.
class SharedBar {
 public:
  SharedBar() = default;
  ~SharedBar();
  SharedBar(SharedBar&& other) noexcept;
  SharedBar& operator=(SharedBar&& other) noexcept;

  /// A file of `len_bytes` zeros, which is made, or emptied if it is there. Stays when the object
  /// goes. Tells on stderr what went wrong.
  [[nodiscard]] static int of_file(const std::string& path, size_t len_bytes, SharedBar* out);
  /// Anonymous memory to be sent to another process. It is sealed: it cannot be made smaller.
  [[nodiscard]] static int anonymous(const char* name, size_t len_bytes, SharedBar* out);

  [[nodiscard]] uint8_t* va() const { return va_; }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }
  /// The object's.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  [[nodiscard]] int map(size_t len_bytes);

  int fd_ = -1;
  uint8_t* va_ = nullptr;
  size_t len_bytes_ = 0;
};

/// The card's word GEN_REQ, which the host writes.
[[nodiscard]] uint32_t gen_req_of(const SharedBar& bar);

}  // namespace rio::cardsim

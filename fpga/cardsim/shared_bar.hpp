/// @file
/// The memory of a BAR that another process maps.
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

  /// Make a file of `len_bytes` zeros, or empty an existing one. It stays when the object goes.
  /// Reports errors on stderr.
  [[nodiscard]] static int of_file(const std::string& path, size_t len_bytes, SharedBar* out);
  /// Make anonymous memory to be sent to another process, sealed so that it cannot shrink.
  [[nodiscard]] static int anonymous(const char* name, size_t len_bytes, SharedBar* out);

  [[nodiscard]] uint8_t* va() const { return va_; }
  [[nodiscard]] size_t len_bytes() const { return len_bytes_; }
  /// The descriptor, which stays this object's.
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

/// @file
/// An endpoint of tagged messages on a card of its own, its buffer, and the address of its peer.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/msgrate/side.hpp"
#include "lib/tag/tagged_context.hpp"

namespace rio::msgrate {

/// Functions return 0 or -errno; what failed is on stderr.
class TagEnd {
 public:
  static constexpr uint32_t kPageBytes = 4096;  // no card wants more

  /// @param len_bytes of the buffer; a page more may be used.
  TagEnd(uint32_t peer, uint32_t len_bytes)
      : peer_(tag::address(peer, kContext)), memory_(uint64_t{len_bytes} + 2 * kPageBytes) {}
  /// Waits until all sends have arrived, for some seconds at most.
  ~TagEnd();
  TagEnd(const TagEnd&) = delete;
  TagEnd& operator=(const TagEnd&) = delete;

  [[nodiscard]] int open(const std::string& card);

  /// The buffer; it begins with a page, as those of others do.
  [[nodiscard]] uint8_t* bytes() {
    return memory_.data() + (0u - reinterpret_cast<uintptr_t>(memory_.data())) % kPageBytes;
  }
  [[nodiscard]] msg::MessagePort& port() { return *port_; }
  [[nodiscard]] int send(uint64_t bits, const void* data, uint64_t size_bytes,
                         tag::SendRequest& request) {
    return endpoint_->send(peer_, bits, data, size_bytes, request);
  }
  [[nodiscard]] int receive(uint64_t bits, void* data, uint64_t size_bytes,
                            tag::RecvRequest& request) {
    return endpoint_->receive({bits, 0, peer_}, data, size_bytes, request);
  }
  /// @param begun of send() or receive(). @return 0 when it is done, or why not.
  [[nodiscard]] int wait(int begun, tag::Request& request) {
    if (begun == 0 && !endpoint_->test(request)) {
      Patience patience;
      do {
        if (!patience.left()) {
          return complain("exchange with", tag::dest_id_of(peer_), ETIMEDOUT);
        }
        endpoint_->progress();
      } while (!endpoint_->test(request));
    }
    const int status = begun < 0 ? begun : request.status;
    return status == 0 ? 0 : complain("exchange with", tag::dest_id_of(peer_), -status);
  }

 private:
  static constexpr uint16_t kContext = 1;

  std::unique_ptr<msg::MessagePort> port_;
  std::unique_ptr<tag::TaggedContext> endpoint_;
  tag::Address peer_;
  std::vector<uint8_t> memory_;
};

}  // namespace rio::msgrate

// Foreign bytes as datagrams of the wire over UDP, each given to a sender and a receiver that have
// some units. A datagram that passes must encode to the same bytes, and no field that a peer sends
// may corrupt the counts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fpga/wire/udp/congestion.hpp"
#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/receiver.hpp"
#include "fpga/wire/udp/sender.hpp"

using namespace rio::wire::udp;

namespace {

constexpr uint32_t kWindow = 16;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

class Member {
 public:
  void hear(const Datagram& got) {
    ++now_ns_;
    fill();
    const uint32_t kept = sender_.kept();
    const int error = sender_.heard(got.heard[0], now_ns_);
    require(error == 0 ? sender_.kept() <= kept : sender_.kept() == kept);
    require(congestion_.under_way_bytes() <= kWindow);
    static_cast<void>(receiver_.put(got.parts[0].unit, got.parts[0].payload));
    if (!receiver_.front().empty()) {
      receiver_.pop();
    }
    require(receiver_.heard().window <= kWindow);
  }

 private:
  void fill() {
    while (!sender_.begin(1).empty()) {
      sender_.end(1);
    }
    for (uint32_t i = 0; i < kWindow; ++i) {
      static_cast<void>(sender_.send(now_ns_));
    }
  }

  uint64_t now_ns_ = 1;
  Congestion congestion_{1};
  Sender sender_{kWindow, 0, &congestion_};
  Receiver receiver_{kWindow, 0};
};

}  // namespace

// Input: datagrams, each behind its length (u8).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Member member;
  while (size > 0) {
    const size_t length = data[0] < size ? data[0] : size - 1;
    Datagram got;
    if (decode({data + 1, length}, &got) == 0) {
      std::vector<uint8_t> again(length);
      require(encode(got, again) == length && std::memcmp(again.data(), data + 1, length) == 0);
      member.hear(got);
    }
    data += 1 + length;
    size -= 1 + length;
  }
  return 0;
}

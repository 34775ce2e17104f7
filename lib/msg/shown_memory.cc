#include "lib/msg/shown_memory.hpp"

#include <sys/random.h>

#include "lib/msg/registrations.hpp"

namespace rio::msg {
namespace {

/// The upper half of the addresses that a key leaves: windows onto regions of memory lie below it.
constexpr uint64_t kFirstRioAddr = uint64_t{1} << 47;
constexpr uint64_t kBytes = uint64_t{1} << 47;
constexpr uint32_t kKeyBit = 48;

}  // namespace

void ShownMemory::open(uint64_t iova) {
  first_iova_ = iova & ~(kBytes - 1);
  open();
}

void ShownMemory::open() {
  if (is_open_ || is_given_up_ || !endpoint_.shows_messages() ||
      !endpoint_.queues().has_windows()) {
    return;
  }
  if (key_ == 0 && getrandom(&key_, sizeof(key_), GRND_NONBLOCK) != sizeof(key_)) {
    return;
  }
  key_ = static_cast<uint16_t>(key_ == UINT16_MAX ? 1 : key_ + 1);
  const pmd::Window all = {.rio_addr = kFirstRioAddr,
                           .size_bytes = kBytes,
                           .iova = first_iova_,
                           .rights = pmd::WindowRights::kRead,
                           .key = key_};
  is_open_ = endpoint_.queues().windows().open(all, &index_) == 0;
}

uint64_t ShownMemory::address(const pmd::mem::Region& region, const uint8_t* va,
                              uint64_t len_bytes) const {
  const pmd::IovaRun& run = *run_of(region, va);
  const auto offset = static_cast<uint64_t>(va - static_cast<const uint8_t*>(run.va));
  const uint64_t at = run.iova + offset - first_iova_;
  const bool is_whole =
      len_bytes <= run.len_bytes - offset && at < kBytes && len_bytes <= kBytes - at && at % 8 == 0;
  return is_whole ? (kFirstRioAddr + at) | uint64_t{key_} << kKeyBit : 0;
}

/// @return whether the card lets nothing be read any more; else it does not answer.
bool ShownMemory::close() {
  is_open_ = false;
  return endpoint_.queues().windows().close(index_) == 0;
}

void ShownMemory::renew() {
  if (is_open_ && close()) {
    open();
  }
}

bool ShownMemory::give_up() {
  is_given_up_ = true;
  return is_open_ && close();
}

}  // namespace rio::msg

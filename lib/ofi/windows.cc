#include "lib/ofi/windows.hpp"

#include <sys/random.h>

#include <cerrno>

#include "lib/msg/registrations.hpp"
#include "lib/ofi/memory.hpp"

namespace rio::ofi {
namespace {

constexpr uint32_t kKeyBit = 48;  // regs: WINDOW KEY
constexpr uint64_t kRioAddrEnd = 1ull << kKeyBit;
constexpr uint64_t kPageBytes = 4096;

[[nodiscard]] uint8_t rights_of(const Memory& memory) {
  using Rights = pmd::WindowRights;
  return static_cast<uint8_t>(((memory.access() & FI_REMOTE_READ) != 0 ? Rights::kRead : 0) |
                              ((memory.access() & FI_REMOTE_WRITE) != 0 ? Rights::kWrite : 0));
}

/// A key that cannot be guessed in a few tries. @return 0: no random number.
[[nodiscard]] uint16_t make_key() {
  uint16_t key = 0;
  return getrandom(&key, sizeof(key), GRND_NONBLOCK) == sizeof(key) ? key : 0;
}

/// The region's address for the card. @return false: it is in several pieces, as when it shares a
/// page with memory registered before.
[[nodiscard]] bool is_one_run(Memory& memory, uint64_t* iova) {
  const pmd::IovaRun& run = *msg::run_of(*memory.window().region, memory.base());
  const auto offset = static_cast<uint64_t>(memory.base() - static_cast<uint8_t*>(run.va));
  *iova = run.iova + offset;
  return memory.size() <= run.len_bytes - offset;
}

}  // namespace

/// Chooses a RapidIO address that no earlier window had, so that addresses which peers still
/// remember lead nowhere.
bool Windows::place(Memory& memory) {
  MemoryWindow& window = memory.window();
  if (window.region == nullptr &&
      port_->endpoint().register_memory(memory.base(), memory.size(), &window.region) != 0) {
    return false;
  }
  // The address has the memory's offset in its page: both are aligned alike.
  const uint64_t behind = reinterpret_cast<uintptr_t>(memory.base()) % kPageBytes;
  const uint64_t end = next_rio_addr_ + 2 * kPageBytes + memory.size();
  if (memory.size() > kRioAddrEnd / 2) {
    return false;
  }
  if (end > kRioAddrEnd) {
    next_rio_addr_ = kFirstRioAddr;  // used again from the start: only the key tells new windows
                                     // from very old ones
  }
  window.rio_addr = next_rio_addr_ + behind;
  next_rio_addr_ = (window.rio_addr + memory.size() + kPageBytes) & ~(kPageBytes - 1);
  window.key = make_key();
  return window.key != 0;
}

bool Windows::let_in(Memory& memory, uint32_t source) {
  MemoryWindow& window = memory.window();
  pmd::WindowTable& table = port_->endpoint().queues().windows();
  uint32_t mask = ~0u;
  if (window.open) {
    mask = window.mask & ~(window.source ^ source);
    if (mask == window.mask) {
      return true;
    }
    // An access under way is refused, and repeated by a message.
    if (table.close(window.index) != 0) {
      return false;
    }
    window.open = false;
  } else if (window.lost || table.full() || !place(memory)) {
    return false;
  }
  uint64_t iova = 0;
  if (!is_one_run(memory, &iova)) {
    return false;
  }
  const pmd::Window wanted = {.rio_addr = window.rio_addr,
                              .size_bytes = memory.size(),
                              .iova = iova,
                              .rights = rights_of(memory),
                              .source = source & mask,
                              .source_mask = mask,
                              .key = window.key};
  window.source = wanted.source;
  window.mask = mask;
  const int rc = table.open(wanted, &window.index);
  window.open = rc == 0;
  window.lost = rc == -ETIMEDOUT;
  return rc == 0;
}

bool Windows::open(Memory& memory, uint32_t source, WindowReply* out) {
  const pmd::Caps& caps = port_->endpoint().caps();
  const bool can = port_->endpoint().queues().has_windows() && rights_of(memory) != 0 &&
                   memory.size() != 0 && !memory.tells() &&
                   (reinterpret_cast<uintptr_t>(memory.base()) & (caps.dma_addr_align - 1)) == 0;
  if (!can || !let_in(memory, source)) {
    return false;
  }
  const MemoryWindow& window = memory.window();
  out->rio_addr = window.rio_addr | uint64_t{window.key} << kKeyBit;
  out->first = virtual_addresses_ ? reinterpret_cast<uintptr_t>(memory.base()) : 0;
  out->bytes = memory.size();
  out->rights = memory.access() & (FI_REMOTE_READ | FI_REMOTE_WRITE);
  return true;
}

int Windows::close(Memory& memory) {
  MemoryWindow& window = memory.window();
  if (window.lost) {
    return -FI_ETIMEDOUT;
  }
  if (window.open) {
    const int rc = port_->endpoint().queues().windows().close(window.index);
    if (rc != 0 && rc != -ENODEV) {
      return -FI_ETIMEDOUT;
    }
    window.open = false;
  }
  if (window.region != nullptr) {
    static_cast<void>(port_->endpoint().unregister_memory(window.region));
    window.region = nullptr;
  }
  return 0;
}

}  // namespace rio::ofi

#include "lib/ofi/memory.hpp"

#include <sys/random.h>

#include <cerrno>

#include "lib/msg/registrations.hpp"
#include "lib/ofi/domain.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/info.hpp"

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
[[nodiscard]] bool is_one_run(Memory& memory, const MemoryWindow& window, uint64_t* iova) {
  const pmd::IovaRun& run = *msg::run_of(*window.region, memory.base());
  const auto offset = static_cast<uint64_t>(memory.base() - static_cast<uint8_t*>(run.va));
  *iova = run.iova + offset;
  return memory.size() <= run.len_bytes - offset;
}

/// Waits for reads of peers that are under way.
int close_memory(fid* fid) {
  constexpr uint32_t kReadMs = 1000;
  Memory& memory = of<Memory>(fid);
  Domain& domain = memory.domain();
  static_cast<void>(msg::wait(
      domain.port(), kReadMs, [&] { domain.progress(); }, [&] { return !memory.in_use(); }));
  const msg::Guard guard(domain.port());
  if (memory.in_use()) {
    return -FI_EBUSY;
  }
  const int rc = domain.regions().close_windows(memory);
  return rc != 0 ? rc : close_object<Memory>(fid);
}
/// Regions need neither enabling nor refreshing: both succeed and do nothing.
int control(fid*, int command, void*) {
  return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

fi_ops object_ops = object_calls(close_memory, kGuarded<Memory, &Memory::bind>, control);

int reg_attr(fid* fid, const fi_mr_attr* attr, uint64_t flags, fid_mr** out) {
  return no_throw([&] {
    if (fid->fclass != FI_CLASS_DOMAIN || attr == nullptr || attr->iov_count != 1 ||
        attr->mr_iov == nullptr || (attr->access & ~kAllWays) != 0) {
      return -FI_EINVAL;
    }
    if ((flags & ~FI_RMA_EVENT) != 0 || attr->offset != 0 || attr->auth_key_size != 0) {
      return -FI_EBADFLAGS;
    }
    Domain& domain = of<Domain>(fid);
    const msg::Guard guard(domain.port());
    auto memory = std::make_unique<Memory>(domain, attr->mr_iov[0], attr->access, attr->context);
    const int rc = domain.regions().add(*memory, attr->requested_key);
    if (rc == 0) {
      *out = memory.release();
    }
    return rc;
  });
}
int reg_pieces(fid* fid, const iovec* pieces, size_t count, uint64_t access, uint64_t offset,
               uint64_t key, uint64_t flags, fid_mr** out, void* user_context) {
  fi_mr_attr attr{};
  attr.mr_iov = pieces;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = key;
  attr.context = user_context;
  return reg_attr(fid, &attr, flags, out);
}
int reg(fid* fid, const void* base, size_t bytes, uint64_t access, uint64_t offset, uint64_t key,
        uint64_t flags, fid_mr** out, void* user_context) {
  const iovec piece = {const_cast<void*>(base), bytes};
  return reg_pieces(fid, &piece, 1, access, offset, key, flags, out, user_context);
}

}  // namespace

int Regions::add(Memory& memory, uint64_t wanted_key) {
  const uint64_t key = own_keys_ ? next_key_ : wanted_key;
  if (!regions_.emplace(key, &memory).second) {
    return -FI_ENOKEY;
  }
  ++next_key_;
  memory.key = key;
  return 0;
}

void Regions::remove(const Memory& memory) {
  const auto found = regions_.find(memory.key);
  if (found != regions_.end() && found->second == &memory) {
    regions_.erase(found);
  }
}

Memory* Regions::find(uint64_t key) const {
  const auto found = regions_.find(key);
  return found == regions_.end() ? nullptr : found->second;
}

Memory* Regions::find(uint64_t key, uint64_t address, uint64_t bytes, uint64_t access,
                      uint8_t** at) const {
  Memory* const found = find(key);
  if (found == nullptr) {
    return nullptr;
  }
  Memory& memory = *found;
  const uint64_t first = first_of(memory);
  const uint64_t offset = address - first;
  if (address < first || offset > memory.size() || bytes > memory.size() - offset ||
      (access & ~memory.access()) != 0) {
    return nullptr;
  }
  *at = memory.base() + offset;
  return &memory;
}

/// Chooses a RapidIO address that no earlier window had, so that addresses which peers still
/// remember lead nowhere.
bool Regions::place(Memory& memory, msg::Rail& rail) {
  MemoryWindow& window = memory.window(rail.index);
  if (window.region == nullptr &&
      rail.endpoint.register_memory(memory.base(), memory.size(), &window.region) != 0) {
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

bool Regions::let_in(Memory& memory, msg::Rail& rail, uint32_t source) {
  MemoryWindow& window = memory.window(rail.index);
  pmd::WindowTable& table = rail.endpoint.queues().windows();
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
  } else if (window.lost || (table.full() && !rail.shown.give_up()) || !place(memory, rail)) {
    return false;
  }
  uint64_t iova = 0;
  if (!is_one_run(memory, window, &iova)) {
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

bool Regions::open_window(Memory& memory, msg::Rail& rail, uint32_t source, WindowReply* out) {
  const pmd::Caps& caps = rail.endpoint.caps();
  const bool can = rail.endpoint.queues().has_windows() && rights_of(memory) != 0 &&
                   memory.size() != 0 && !memory.tells() && rail.health.error() == 0 &&
                   (reinterpret_cast<uintptr_t>(memory.base()) & (caps.dma_addr_align - 1)) == 0;
  if (!can || !let_in(memory, rail, source)) {
    return false;
  }
  const MemoryWindow& window = memory.window(rail.index);
  out->rio_addr = window.rio_addr | uint64_t{window.key} << kKeyBit;
  out->first = first_of(memory);
  out->bytes = memory.size();
  out->rights = memory.access() & (FI_REMOTE_READ | FI_REMOTE_WRITE);
  return true;
}

int Regions::close_window(Memory& memory, uint32_t rail) {
  if (rail >= port_.rails().count()) {
    return 0;
  }
  MemoryWindow& window = memory.window(rail);
  if (window.lost) {
    return -FI_ETIMEDOUT;
  }
  if (window.open) {
    const int rc = port_.rails().at(rail).endpoint.queues().windows().close(window.index);
    if (rc != 0 && rc != -ENODEV) {
      return -FI_ETIMEDOUT;
    }
    window.open = false;
  }
  return 0;
}

int Regions::close_windows(Memory& memory) {
  int rc = 0;
  for (msg::Rail* const rail : port_.rails()) {
    const int closed = close_window(memory, rail->index);
    MemoryWindow& window = memory.window(rail->index);
    if (closed == 0 && window.region != nullptr) {
      static_cast<void>(rail->endpoint.unregister_memory(window.region));
      window.region = nullptr;
    }
    rc = rc != 0 ? rc : closed;
  }
  return rc;
}

Memory::Memory(Domain& domain, const iovec& bytes, uint64_t access, void* user_context)
    : fid_mr{{FI_CLASS_MR, user_context, &object_ops}, nullptr, FI_KEY_NOTAVAIL},
      domain_(domain),
      use_(domain),
      bytes_(bytes),
      access_(access) {
  mem_desc = this;
}

Memory::~Memory() {
  domain_.regions().remove(*this);
}

int Memory::bind(struct fid* what, uint64_t flags) {
  if (what->fclass == FI_CLASS_EP) {
    return 0;  // every endpoint of the domain reaches the region
  }
  if (what->fclass != FI_CLASS_CNTR || &of<FiCounter>(what).domain() != &domain_) {
    return -FI_EINVAL;
  }
  if ((flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0 || flags == 0) {
    return -FI_EBADFLAGS;
  }
  // Accesses through a card's window cannot be counted: close it.
  if (const int rc = domain_.regions().close_windows(*this); rc != 0) {
    return rc;
  }
  FiCounter& counter = of<FiCounter>(what);
  if ((flags & FI_REMOTE_WRITE) != 0) {
    writes_ = &counter;
    writes_use_ = Use(counter);
  }
  if ((flags & FI_REMOTE_READ) != 0) {
    reads_ = &counter;
    reads_use_ = Use(counter);
  }
  return 0;
}

void Memory::count(bool writes) {
  ofi::count(writes ? writes_ : reads_, 0);
}

fi_ops_mr memory_ops = {sizeof(fi_ops_mr), reg, reg_pieces, reg_attr};

}  // namespace rio::ofi

#include "lib/ofi/memory.hpp"

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fi_counter.hpp"
#include "lib/ofi/info.hpp"

namespace rio::ofi {
namespace {

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
  const int rc = domain.windows().close(memory);
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
  const uint64_t first = virtual_addresses_ ? reinterpret_cast<uintptr_t>(memory.base()) : 0;
  const uint64_t offset = address - first;
  if (address < first || offset > memory.size() || bytes > memory.size() - offset ||
      (access & ~memory.access()) != 0) {
    return nullptr;
  }
  *at = memory.base() + offset;
  return &memory;
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
  if (const int rc = domain_.windows().close(*this); rc != 0) {
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

fi_ops_mr* memory_ops() {
  static fi_ops_mr ops = {sizeof(fi_ops_mr), reg, reg_pieces, reg_attr};
  return &ops;
}

}  // namespace rio::ofi

/// @file
/// fi_mr_reg(): memory that peers may read and write.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <unordered_map>

#include "lib/ofi/fid.hpp"
#include "lib/ofi/windows.hpp"

namespace rio::ofi {

class FiCounter;
class Domain;
class Memory;

/// The registered memory of a domain. All functions under a Guard.
class Regions {
 public:
  /// @param virtual_addresses peers name addresses; otherwise offsets. @param own_keys the provider
  /// chooses keys; otherwise the user does.
  void set_up(bool virtual_addresses, bool own_keys) {
    virtual_addresses_ = virtual_addresses;
    own_keys_ = own_keys;
  }

  /// @return 0; -FI_ENOKEY: the key is taken.
  [[nodiscard]] int add(Memory& memory, uint64_t wanted_key);
  void remove(const Memory& memory);
  /// Find a region by foreign numbers. @param access FI_REMOTE_READ or FI_REMOTE_WRITE, or both.
  /// @return the region; null: there is none, or it does not include the range or the right.
  [[nodiscard]] Memory* find(uint64_t key) const;
  [[nodiscard]] Memory* find(uint64_t key, uint64_t address, uint64_t bytes, uint64_t access,
                             uint8_t** at) const;

 private:
  bool virtual_addresses_ = false;
  bool own_keys_ = false;
  uint64_t next_key_ = 1;
  std::unordered_map<uint64_t, Memory*> regions_;
};

class Memory : public fid_mr, public Used {
 public:
  using Fid = fid_mr;

  Memory(Domain& domain, const iovec& bytes, uint64_t access, void* user_context);
  ~Memory();

  /// Like fi_mr_bind(). A counter counts writes; with FI_REMOTE_READ reads; with both flags both.
  /// @return 0; -FI_EINVAL: neither an endpoint nor a counter of this domain; -FI_EBADFLAGS;
  /// -FI_ETIMEDOUT: as Windows::close().
  [[nodiscard]] int bind(struct fid* what, uint64_t flags);
  /// A peer has written to the region, or read from it.
  void count(bool writes);

  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] uint8_t* base() const { return static_cast<uint8_t*>(bytes_.iov_base); }
  [[nodiscard]] uint64_t size() const { return bytes_.iov_len; }
  [[nodiscard]] uint64_t access() const { return access_; }
  /// Whether a counter counts accesses.
  [[nodiscard]] bool tells() const { return writes_ != nullptr || reads_ != nullptr; }
  [[nodiscard]] MemoryWindow& window() { return window_; }

 private:
  Domain& domain_;
  Use use_;
  iovec bytes_;
  uint64_t access_;
  FiCounter* writes_ = nullptr;  // null: writes are not counted
  FiCounter* reads_ = nullptr;
  Use writes_use_;
  Use reads_use_;
  MemoryWindow window_;
};

/// Table of fi_mr_reg() and its relatives.
[[nodiscard]] fi_ops_mr* memory_ops();

}  // namespace rio::ofi

/// @file
/// fi_mr_reg(): memory that peers may read and write, and windows of the card onto it, through
/// which the cards of peers do so without involving software here.
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <cstdint>
#include <unordered_map>

#include "lib/msg/message_port.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/fid.hpp"

namespace rio::ofi {

class FiCounter;
class Domain;

/// The window of one rail onto one region; belongs to Regions.
struct MemoryWindow {
  bool open = false;
  bool lost = false;    // the card did not confirm that it has closed the window: it may be open
  uint32_t index = 0;   // index in the card's table
  uint32_t source = 0;  // which destIDs may use it: those with these bits
  uint32_t mask = 0;    // under this mask
  uint64_t rio_addr = 0;
  uint16_t key = 0;
  const pmd::mem::Region* region = nullptr;  // null: not registered with the card
};

class Memory : public fid_mr, public Used {
 public:
  using Fid = fid_mr;

  Memory(Domain& domain, const iovec& bytes, uint64_t access, void* user_context);
  ~Memory();

  /// Like fi_mr_bind(). A counter counts writes; with FI_REMOTE_READ reads; with both flags both.
  /// @return 0; -FI_EINVAL: neither an endpoint nor a counter of this domain; -FI_EBADFLAGS;
  /// -FI_ETIMEDOUT: as Regions::close_windows().
  [[nodiscard]] int bind(struct fid* what, uint64_t flags);
  /// A peer has written to the region, or read from it.
  void count(bool writes);

  [[nodiscard]] Domain& domain() { return domain_; }
  [[nodiscard]] uint8_t* base() const { return static_cast<uint8_t*>(bytes_.iov_base); }
  [[nodiscard]] uint64_t size() const { return bytes_.iov_len; }
  [[nodiscard]] uint64_t access() const { return access_; }
  /// Whether a counter counts accesses.
  [[nodiscard]] bool tells() const { return writes_ != nullptr || reads_ != nullptr; }
  /// @param rail of the domain's port.
  [[nodiscard]] MemoryWindow& window(uint32_t rail) { return windows_[rail]; }

 private:
  Domain& domain_;
  Use use_;
  iovec bytes_;
  uint64_t access_;
  FiCounter* writes_ = nullptr;  // null: writes are not counted
  FiCounter* reads_ = nullptr;
  Use writes_use_;
  Use reads_use_;
  std::array<MemoryWindow, msg::kRailsMax> windows_;
};

/// The registered memory of a domain, and its windows. All functions under a Guard.
class Regions {
 public:
  /// @param port outlives it. @param virtual_addresses peers name addresses; otherwise offsets.
  /// @param own_keys the provider chooses keys; otherwise the user does.
  Regions(msg::MessagePort& port, bool virtual_addresses, bool own_keys)
      : port_(port), virtual_addresses_(virtual_addresses), own_keys_(own_keys) {}

  /// @return 0; -FI_ENOKEY: the key is taken.
  [[nodiscard]] int add(Memory& memory, uint64_t wanted_key);
  void remove(const Memory& memory);
  /// Find a region by foreign numbers. @param access FI_REMOTE_READ or FI_REMOTE_WRITE, or both.
  /// @return the region; null: there is none, or it does not include the range or the right.
  [[nodiscard]] Memory* find(uint64_t key) const;
  [[nodiscard]] Memory* find(uint64_t key, uint64_t address, uint64_t bytes, uint64_t access,
                             uint8_t** at) const;

  /// Open a window of a rail for a peer that asks and has the region's key. The window lets in the
  /// peers that have asked, and as few others as a mask of destIDs can. @param source destID of the
  /// peer on that rail. @return false: use messages. The card has no windows or none left, cannot
  /// reach the memory, or accesses have to be counted.
  [[nodiscard]] bool open_window(Memory& memory, msg::Rail& rail, uint32_t source,
                                 WindowReply* out);
  /// Close the window of a rail: no access by it is under way any more, and none that comes later
  /// finds the memory. @param rail foreign; no effect if there is none of that number.
  /// @return 0; -FI_ETIMEDOUT: the card does not answer, and may still write the memory; logged.
  [[nodiscard]] int close_window(Memory& memory, uint32_t rail);
  /// Close the windows of all rails, and release the memory: no peer reaches it any more.
  /// @return as close_window().
  [[nodiscard]] int close_windows(Memory& memory);

 private:
  /// The address that peers use for a region's first byte.
  [[nodiscard]] uint64_t first_of(const Memory& memory) const {
    return virtual_addresses_ ? reinterpret_cast<uintptr_t>(memory.base()) : 0;
  }
  [[nodiscard]] bool place(Memory& memory, msg::Rail& rail);
  [[nodiscard]] bool let_in(Memory& memory, msg::Rail& rail, uint32_t source);

  static constexpr uint64_t kFirstRioAddr = 1u << 20;

  msg::MessagePort& port_;
  const bool virtual_addresses_;
  const bool own_keys_;
  uint64_t next_key_ = 1;
  uint64_t next_rio_addr_ = kFirstRioAddr;
  std::unordered_map<uint64_t, Memory*> regions_;
};

/// fi_mr_reg() and its relatives.
extern fi_ops_mr memory_ops;

}  // namespace rio::ofi

/// @file
/// Two hosts of two rails each in virtual time, whose libfabric endpoints read, write and count up
/// each other's memory while the rails are cut and mended.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lib/ofi/domain.hpp"
#include "lib/ofi/fid.hpp"
#include "tests/soak/storms.hpp"

namespace rio::test {

/// One storm. One thread; one at a time in a program.
class RmaStorm final : private Storm {
 public:
  explicit RmaStorm(const StormPlan& plan);
  ~RmaStorm();

  [[nodiscard]] StormResult run();

 private:
  static constexpr uint32_t kSlots =
      8;                                // places in a host's memory, each with one access at a time
  static constexpr uint32_t kAdds = 3;  // additions under way
  static constexpr uint32_t kSlotBytes = 100'000;

  struct Close {
    template <class Object>
    void operator()(Object* object) const {
      static_cast<void>(fi_close(&object->fid));
    }
  };
  template <class Object>
  using Held = std::unique_ptr<Object, Close>;

  enum class Verb : uint8_t { kWrite, kRead, kFetchAdd, kAdd };
  /// A place for one access at a time. Its number is its slot of the peer's memory; those behind
  /// kSlots add to the counter.
  struct Access {
    Verb verb = Verb::kWrite;
    bool is_free = true;
    uint32_t offset = 0;  // in the slot
    uint32_t length = 0;
    uint64_t begun_ns = 0;
    std::vector<uint8_t> local;     // bytes to write, or bytes that were read
    std::vector<uint8_t> expected;  // what the whole slot contains when no write is under way
    uint64_t one = 1;
    uint64_t fetched = 0;
    uint64_t added_before = 0;  // additions done when it began
  };
  struct End {
    ofi::FiFabric fabric{};
    msg::MessagePort* port = nullptr;  // the domain's
    Held<fid_domain> domain;
    Held<fid_av> av;
    Held<fid_cq> queue;
    Held<fid_ep> ep;
    Held<fid_mr> region;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    std::vector<uint8_t> memory;  // that the peer accesses; the counter is behind the slots
    std::array<Access, kSlots + kAdds> accesses;
    uint64_t begun = 0;
    uint64_t done = 0;
    uint64_t adds_begun = 0;
    uint64_t adds_done = 0;
    std::vector<bool> fetched;  // by value of the counter
    uint64_t next_ns = 0;       // when to begin the next access
    uint64_t last_ns = 0;       // of the last completion
    uint64_t activity = 0;
  };

  [[nodiscard]] int open(uint32_t host);
  [[nodiscard]] int open_endpoint(End& end, fi_info& info);
  [[nodiscard]] int insert_peer(uint32_t host);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] const uint8_t* slot_of_peer(uint32_t host, size_t index) const {
    return ends_[1 - host].memory.data() + index * kSlotBytes;
  }
  [[nodiscard]] uint64_t counter_of_peer(uint32_t host) const;
  uint32_t turn(uint32_t host);
  uint32_t begin_accesses(uint32_t host);
  [[nodiscard]] ssize_t begin(uint32_t host, size_t index);
  void draw_bytes(Access& access);
  void end_access(uint32_t host, Access& access);
  void check_slot(uint32_t host, size_t index);
  void check_add(uint32_t host, const Access& access);
  void check_all();

  std::array<End, kHosts> ends_;
  bool is_last_ = false;  // no access begins any more
};

}  // namespace rio::test

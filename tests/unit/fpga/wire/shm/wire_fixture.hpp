/// @file
/// A member of a fabric between processes, and one that the test moves by hand: an Exchange, and
/// direct writes to its half.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/unix_socket.hpp"
#include "fpga/wire/shm/shm_wire.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"

namespace rio::test {

class Wire : public testing::Test {
 protected:
  Wire() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~Wire() override { unsetenv("RIO_RUNTIME_DIR"); }

  std::unique_ptr<wire::shm::ShmWire> join(
      uint32_t id, uint32_t ids = 1,
      const std::shared_ptr<const base::ReadableAreas>& areas = nullptr) {
    std::unique_ptr<wire::shm::ShmWire> wire;
    std::string error;
    EXPECT_EQ(wire::shm::ShmWire::join({.fabric = "f", .id = id, .ids = ids, .areas = areas}, &wire,
                                       &error),
              0)
        << error;
    return wire;
  }
  /// Pumps until a partner has come or gone.
  static model::PartnerChange change(wire::shm::ShmWire& wire) {
    model::PartnerChange found{};
    EXPECT_TRUE(wait_until([&] {
      wire.pump(0);
      wire.check_partners(1, 1);
      return wire.next_change(&found);
    }));
    return found;
  }

  [[nodiscard]] static bool send(model::Outbound& to, uint64_t address) {
    alignas(16) const uint8_t payload[16] = {};
    return to.requests->send_short({{uint64_t{2} << 32, 0, 0, address}}, payload, 16);
  }

  /// A member with destID 2 meets `one`, which has destID 1, sends frames with addresses from 1 on,
  /// and dies.
  void member_2_sends_and_dies(wire::shm::ShmWire& one, uint64_t frames) {
    const auto two = join(2);
    model::Outbound* const to = two->route(1);
    ASSERT_NE(to, nullptr);
    EXPECT_TRUE(change(*two).here);
    EXPECT_TRUE(change(one).here);
    for (uint64_t number = 1; number <= frames; ++number) {
      ASSERT_TRUE(send(*to, number));
    }
  }
  /// Pumps until that member has gone. @return false: it took too long.
  [[nodiscard]] static bool has_no_member_2(wire::shm::ShmWire& one) {
    return wait_until([&] {
      one.pump(0);
      return one.route(2) == nullptr;
    });
  }

  TempDir dir_;
};

/// A member that the test moves by hand.
class Evil {
 public:
  explicit Evil(uint32_t id, uint32_t victim) {
    std::unique_ptr<wire::shm::Directory> directory;
    std::string error;
    EXPECT_EQ(wire::shm::Directory::join({.fabric = "f", .id = id}, &directory, &error), 0)
        << error;
    exchange_ = std::make_unique<wire::shm::Exchange>(std::move(directory), &flag_, &thread_,
                                                      &troubles_, nullptr);
    EXPECT_EQ(exchange_->start(&error), 0) << error;
    exchange_->want(victim);
    wire::shm::Event news;
    EXPECT_TRUE(wait_until([&] { return exchange_->take(&news); }));
    EXPECT_EQ(news.kind, wire::shm::Event::kCame);
    link_ = news.link;
  }
  wire::shm::Link& link() { return *link_; }
  model::Frame& frame() { return *reinterpret_cast<model::Frame*>(link_->joint.mine.requests()); }
  /// Whether the victim has ended the connection.
  bool is_cut() {
    wire::shm::Event news;
    return wait_until([&] { return exchange_->take(&news); }) &&
           news.kind == wire::shm::Event::kGone;
  }

 private:
  std::atomic<bool> flag_{false};
  wire::MemberThread thread_;
  wire::Troubles troubles_{&thread_};
  std::unique_ptr<wire::shm::Exchange> exchange_;
  std::shared_ptr<wire::shm::Link> link_;
};

}  // namespace rio::test

// The shortcuts of fpga/model/fast give the results of fpga/model/reference: the same random
// traffic goes through cards that work segment by segment (exact mode) and through cards in fast
// mode. Completions, buffers and counters are compared word by word.
//
// These may differ:
// - The letter of a message: the card picks it (docs/card.md, Sending). In fast mode a letter is
//   free again sooner.
// - Packets, retries and errors are counted by segment in exact mode, and by message in fast mode.
//   So an exact card's counts and retries are those of a fast card times the number of segments. A
//   card whose messages are pulled counts a whole run as sent again, and a RETRY for each message.
// - The time of a completion: a card in fast mode reads its clock at each 16th step.
// - The order of messages of different senders, and of messages after a refused one: the card
//   promises no order between letters, nor between senders. Also, where messages are pulled, the
//   order of different mailboxes (who sends to several there gets room for all); and where runs
//   carry their bytes, any order, since a run waits for room and other messages pass it.
// - Messages of a pulled run are fetched together. If the ring is stopped, those behind a refused
//   one end as RETRY_EXPIRED; an exact card has not fetched them, and they end as FLUSHED.
// - The bytes of a buffer that is returned with an error: an exact card has written the segments
//   that arrived before.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/support/env_number.hpp"
#include "tests/unit/fpga/model/same_traffic.hpp"

namespace rio::test {
namespace {

using regs::Status;

constexpr uint32_t kTxEntries = 1u << World::kTxLog2;
constexpr uint32_t kRounds = 60;

class Same : public testing::TestWithParam<std::tuple<Wiring, uint64_t>> {
 protected:
  Same() { rebase(); }
  [[nodiscard]] bool pulls() const { return wiring_ >= Wiring::kPulls; }
  /// Does the same to both worlds.
  template <class Fn>
  void both(Fn fn) {
    fn(exact_);
    fn(fast_);
  }

  // Traffic.

  /// Posts entries of a dedicated ring, and messages for them. @return the number of messages.
  uint32_t dedicated(Spot from, uint32_t most, bool in_order, uint32_t entries) {
    const Spot to = {(from.node + exact_.nodes() - 1) % exact_.nodes(), 0};
    const uint32_t which = random_.below(World::kDedicated);
    if (from.pair != 0 || !traffic_.dedicated_to(to, from) || broken_.contains({to.node, which})) {
      return 0;
    }
    const uint32_t count = 1 + random_.below(std::min(most, 8u));
    const bool long_ones = exact_config_.retry_limit == 0;
    uint64_t address = traffic_.any_address(from) & ~uint64_t{255};
    for (uint32_t i = 0; i < count; ++i) {
      Send send;
      send.from = from;
      send.desc.dest_id = World::dest_id(to);
      send.desc.cookie = traffic_.next_cookie();
      const uint32_t size =
          256 * (long_ones ? (random_.one_in(2) ? 16 : 1 + random_.below(16)) : 1);
      send.desc.length = size - (random_.one_in(3) ? random_.below(8) : 0);
      if (address + size > exact_.tx_bytes(from.node) + World::kTxBytes || random_.one_in(4)) {
        address = traffic_.any_address(from);
      }
      send.desc.addr = address;
      address += send.desc.length;
      address = (address + 7) & ~uint64_t{7};
      const uint32_t code = size <= 2048 && random_.one_in(5) ? kSsize128 : kSsize256;
      RandomTraffic::set(&send,
                         Control::ssize.put(exact_config_.retry_limit != 0 ? kSsize256 : code) |
                             Control::mbox.put(2 + which) | Control::order.put(in_order));
      const bool wrong = i + 1 == count && entries == ~0u && long_ones && random_.one_in(10);
      if (wrong) {
        broken_.insert({to.node, which});
      }
      if (i < entries) {
        const uint32_t cookie = traffic_.next_cookie();
        const uint32_t entry = !wrong ? size : size == 4096 ? size - 256 : size + 256;
        both([&](World& world) { world.post_dedicated(to, which, entry, cookie); });
      } else {
        owed_.push_back({to, which, size});
      }
      sends_.push_back(send);
    }
    return count;
  }
  /// Counts the buffers of the shared queue that the message needs.
  void reckon(const Send& send) {
    Spot to;
    const uint32_t mbox = Control::mbox.get(send.desc.control);
    if (Control::op.get(send.desc.control) == static_cast<uint32_t>(regs::TxOp::kDoorbell)) {
      return;
    }
    if (exact_.target(send.desc.dest_id, mbox, &to)) {
      ++needed_[{to.node, to.pair}];
    }
  }

  // Results.

  void post_all(bool one_by_one) {
    for (const Send& send : sends_) {
      both([&](World& world) {
        const uint32_t index = world.post(send);
        posted_[{send.from.node, send.from.pair, index}] = send;
        if (one_by_one) {
          world.ring_doorbell(send.from);
          world.step_all();
        }
      });
    }
    for (const Spot spot : traffic_.spots()) {
      both([&](World& world) { world.ring_doorbell(spot); });
    }
  }
  /// Compares the completions of both worlds. @param refused the order of messages may differ.
  void take(bool refused) {
    for (const Spot spot : traffic_.spots()) {
      Results exact = exact_.take(spot);
      Results fast = fast_.take(spot);
      SCOPED_TRACE(testing::Message() << "node " << spot.node << " pair " << spot.pair);
      compare_sent(spot, exact.sent, fast.sent);
      compare_received(exact, fast, refused);
      compare_grouped(exact.bells, fast.bells, refused,
                      [](const BellResult& bell) { return bell.source; });
      ASSERT_EQ(exact.events, fast.events);
      taken_ += exact.received.size();
    }
  }
  void compare_sent(Spot spot, std::vector<TxResult>& exact, std::vector<TxResult>& fast) {
    for (auto* all : {&exact, &fast}) {
      std::sort(all->begin(), all->end(),
                [](const TxResult& a, const TxResult& b) { return a.cookie < b.cookie; });
    }
    ASSERT_EQ(exact.size(), fast.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      const TxResult& a = exact[i];
      const TxResult& b = fast[i];
      const auto it = posted_.find({spot.node, spot.pair, a.index});
      ASSERT_NE(it, posted_.end());
      const regs::TxDesc& desc = it->second.desc;
      SCOPED_TRACE(testing::Message() << "cookie " << a.cookie << " length " << desc.length
                                      << " control " << std::hex << desc.control);
      ASSERT_EQ(a.cookie, desc.cookie);
      ASSERT_EQ(a.index, b.index);
      ASSERT_EQ(a.cookie, b.cookie);
      if (!pulls() || a.status != Status::kFlushed) {
        ASSERT_EQ(a.status, b.status);
      } else {
        ASSERT_TRUE(b.status == Status::kFlushed || b.status == Status::kRetryExpired);
      }
      const bool message =
          Control::op.get(desc.control) == static_cast<uint32_t>(regs::TxOp::kMessage);
      const uint32_t segments = message ? segments_of(desc) : 1;
      if (!pulls()) {
        ASSERT_EQ(a.retries, segments * b.retries);
      }
      ASSERT_GE(a.time, since_);
      ASSERT_LE(a.time, exact_.ticks());
      ASSERT_GE(b.time, since_);
      ASSERT_LE(b.time, fast_.ticks());
      const bool sent = a.status == Status::kOk || a.status == Status::kRetryExpired ||
                        a.status == Status::kErrorResponse;
      more_packets_ += sent ? (segments - 1) * (1 + b.retries) : 0;
      failed_ = failed_ || a.status != Status::kOk;
      posted_.erase(it);
    }
  }
  void compare_received(Results& exact, Results& fast, bool refused) const {
    const bool any_order = refused || wiring_ == Wiring::kBytesBehind;
    compare_grouped(exact.received, fast.received, any_order, [this](const RxResult& result) {
      return std::tuple(result.ring, result.source, pulls() ? result.mbox : 0);
    });
    for (Results* results : {&exact, &fast}) {
      std::sort(results->indices.begin(), results->indices.end());
      std::sort(results->arrivals.begin(), results->arrivals.end());
    }
    ASSERT_EQ(exact.indices, fast.indices);
    ASSERT_EQ(exact.arrivals, fast.arrivals);
  }
  /// Compares the counts since rebase(). @param whole every message was sent whole.
  void compare_counts(bool whole) {
    uint32_t tx[2] = {};
    uint32_t rx[2] = {};
    for (uint32_t node = 0; node < exact_.nodes(); ++node) {
      const model::PortCounts a = delta(exact_, 0, node);
      const model::PortCounts b = delta(fast_, 1, node);
      tx[0] += a.tx_packets;
      tx[1] += b.tx_packets;
      rx[0] += a.rx_packets;
      rx[1] += b.rx_packets;
      ASSERT_EQ(a.tx_timeouts, b.tx_timeouts);
      ASSERT_EQ(a.rx_timeouts, b.rx_timeouts);
      ASSERT_GE(a.rx_errors, b.rx_errors);
      ASSERT_GE(a.rx_unmapped, b.rx_unmapped);
      ASSERT_EQ(exact_.refused(node), fast_.refused(node));
      ASSERT_TRUE(exact_.tx_bytes_whole(node) && fast_.tx_bytes_whole(node));
    }
    ASSERT_EQ(tx[0], rx[0]);
    if (!pulls()) {
      ASSERT_EQ(tx[1], rx[1]);
    }
    if (whole) {
      ASSERT_EQ(tx[0], tx[1] + more_packets_);
    }
  }
  [[nodiscard]] model::PortCounts delta(World& world, uint32_t which, uint32_t node) {
    model::PortCounts now = world.counts(node);
    const model::PortCounts& then = counts_[which][node];
    now.tx_packets -= then.tx_packets;
    now.rx_packets -= then.rx_packets;
    now.rx_errors -= then.rx_errors;
    now.rx_unmapped -= then.rx_unmapped;
    now.tx_timeouts -= then.tx_timeouts;
    now.rx_timeouts -= then.rx_timeouts;
    return now;
  }
  /// Counters are compared relative to their values at this point.
  void rebase() {
    for (uint32_t node = 0; node < exact_.nodes(); ++node) {
      counts_[0][node] = exact_.counts(node);
      counts_[1][node] = fast_.counts(node);
    }
    more_packets_ = 0;
    since_ = exact_.ticks();
    failed_ = false;
  }
  /// Works, and lets letters rest, until everything posted is completed.
  void drain(bool refused) {
    for (int i = 0; i < 12 && exact_.unfinished() + fast_.unfinished() > 0; ++i) {
      give_bells();
      quiet();
    }
    take(refused);
    ASSERT_TRUE(posted_.empty()) << posted_.size() << " left, the first for "
                                 << posted_.begin()->second.desc.dest_id << " control " << std::hex
                                 << posted_.begin()->second.desc.control;
  }
  void quiet() {
    both([&](World& world) {
      world.pass_us(1000 * World::kMsOfQuiet);
      world.settle();
    });
  }
  void give_bells() {
    for (const Spot spot : traffic_.spots()) {
      both([&](World& world) { world.give_bells(spot); });
    }
  }
  void settle() {
    both([](World& world) { world.settle(); });
  }

  // Rounds.

  /// A round with a buffer for each message.
  void plenty() {
    sends_.clear();
    needed_.clear();
    std::map<uint32_t, uint32_t> bells;  // number of doorbells to each destID
    for (const Spot spot : traffic_.spots()) {
      uint32_t left = random_.one_in(3) ? kTxEntries : random_.below(kTxEntries + 1);
      while (left > 0) {
        if (random_.one_in(6)) {
          const bool in_order = wiring_ == Wiring::kBytesBehind || random_.one_in(2);
          left -= dedicated(spot, left, in_order, ~0u);
          continue;
        }
        const Send send = traffic_.any_send(spot);
        const uint32_t entries = send.wide ? 2 : 1;
        const bool bell =
            Control::op.get(send.desc.control) == static_cast<uint32_t>(regs::TxOp::kDoorbell);
        if (entries > left || (bell && ++bells[send.desc.dest_id] > 1u << World::kBellsLog2)) {
          break;
        }
        reckon(send);
        sends_.push_back(send);
        left -= entries;
      }
    }
    for (const Spot spot : traffic_.spots()) {
      both([&](World& world) {
        const uint32_t have = world.shared_left(spot);
        const uint32_t want = needed_[{spot.node, spot.pair}];
        world.post_shared(spot, want > have ? want - have : 0);
        world.give_bells(spot);
      });
    }
    post_all(random_.one_in(2));
    settle();
    drain(false);
    compare_counts(!failed_);
    mend();
  }
  /// Restarts rings that an error has stopped, and ends the rest of letters.
  void mend() {
    for (const auto& [node, which] : broken_) {
      both([&, n = node, w = which](World& world) { world.restart_dedicated({n, 0}, w); });
    }
    broken_.clear();
    if (failed_) {
      quiet();
      take(true);
    }
    rebase();
  }
  /// A round with one sender and fewer buffers than messages.
  void scarce() {
    sends_.clear();
    owed_.clear();
    const Spot from = traffic_.any_spot();
    Spot to = from;
    const bool to_dedicated = random_.one_in(3);
    if (to_dedicated) {
      dedicated(from, 8, true, random_.below(3));
    } else {
      one_target(from, &to);
    }
    post_all(false);
    settle();
    for (uint32_t i = random_.below(3); i > 0; --i) {
      both([](World& world) {
        world.pass_us(200);
        world.settle();
      });
    }
    const uint32_t end = random_.below(8);
    finish(pulls() && !is_one_mailbox() ? 4 : end, from, to);
  }
  [[nodiscard]] bool is_one_mailbox() const {
    return std::ranges::all_of(sends_, [this](const Send& send) {
      return Control::mbox.get(send.desc.control ^ sends_[0].desc.control) == 0;
    });
  }
  /// Sends more messages or doorbells to one pair than it has room for.
  void one_target(Spot from, Spot* to) {
    Send send = traffic_.plain(from);
    ASSERT_TRUE(exact_.target(send.desc.dest_id, Control::mbox.get(send.desc.control), to));
    const bool bells = random_.one_in(4);
    const uint32_t left = exact_.shared_left(*to);
    const uint32_t count = bells ? kTxEntries : 2 + random_.below(kTxEntries - 1);
    const uint32_t missing = 1 + random_.below(count);
    if (!bells) {
      if (left + missing > count) {
        return;
      }
      both([&](World& world) { world.post_shared(*to, count - missing - left); });
      owed_.push_back({*to, ~0u, missing});
    }
    for (uint32_t i = 0; i < count; ++i) {
      Send next = traffic_.plain(from);
      next.desc.dest_id = send.desc.dest_id;
      if (bells) {
        RandomTraffic::set(&next, Control::op.put(static_cast<uint32_t>(regs::TxOp::kDoorbell)));
        next.desc.addr = random_.below(0x10000);
      } else {
        const uint32_t mbox = Control::mbox.get(send.desc.control);
        const bool several = next.desc.length > 256;
        RandomTraffic::set(&next, Control::ssize.put(kSsize256) |
                                      Control::mbox.put(several ? mbox & 1 : mbox) |
                                      Control::order.put(random_.one_in(4)));
        Spot at;
        const bool there = exact_.target(next.desc.dest_id, several ? mbox & 1 : mbox, &at);
        if (!there || at.node != to->node || at.pair != to->pair) {
          next.desc.length = 1 + next.desc.length % 256;
          RandomTraffic::add(&next, Control::mbox.put(mbox));
        }
      }
      sends_.push_back(next);
    }
  }
  struct Owed {
    Spot to;
    uint32_t which;  // the dedicated ring; ~0: the shared one
    uint32_t count;  // number of shared buffers, or the size of an entry
  };
  void give_owed() {
    for (const Owed& owed : owed_) {
      if (owed.which == ~0u) {
        both([&](World& world) { world.post_shared(owed.to, owed.count); });
      } else {
        const uint32_t cookie = traffic_.next_cookie();
        both([&](World& world) { world.post_dedicated(owed.to, owed.which, owed.count, cookie); });
      }
    }
    owed_.clear();
  }
  void finish(uint32_t how, Spot from, Spot to) {
    SCOPED_TRACE(testing::Message() << "ends by " << how);
    bool whole = false;
    const Spot partner = owed_.empty() ? to : owed_[0].to;
    switch (how) {
      case 0:  // the sender is reset, and its messages are lost
        both([&](World& world) { world.reset(from.node); });
        posted_.clear();
        break;
      case 1:
        if (partner.node != from.node) {
          both([&](World& world) { world.reset(partner.node); });
          std::erase_if(owed_, [](const Owed& owed) { return owed.which == ~0u; });
          refill(partner.node);
          break;
        }
        [[fallthrough]];
      case 2:
        both([&](World& world) { world.stop_tx(from); });
        take(true);
        both([&](World& world) { world.start_tx(from); });
        break;
      case 3:
        both([&](World& world) {
          world.set_link(from.node, false);
          world.settle();
          world.pass_us(1000 * World::kMsOfQuiet);
          world.settle();
          world.set_link(from.node, true);
          world.settle();
        });
        break;
      default:
        whole = !pulls();
    }
    give_owed();
    give_bells();
    both([](World& world) {
      world.pass_us(200);
      world.settle();
    });
    drain(true);
    compare_counts(whole && !failed_);
    failed_ = true;
    refresh();
    mend();
  }
  /// Posts buffers for the messages that senders have under way when a receiver was reset.
  void refill(uint32_t node) {
    for (uint32_t pair = 0; pair < exact_.pairs(); ++pair) {
      both([&](World& world) { world.post_shared({node, pair}, 2 * kTxEntries); });
    }
  }
  /// Restarts the dedicated rings, as they may have entries that no message will fill.
  void refresh() {
    for (uint32_t node = 0; node < exact_.nodes(); ++node) {
      for (uint32_t which = 0; which < World::kDedicated; ++which) {
        both([&](World& world) { world.restart_dedicated({node, 0}, which); });
      }
    }
    for (const Spot spot : traffic_.spots()) {
      both([&](World& world) { static_cast<void>(world.take(spot)); });
    }
  }

  const Wiring wiring_ = std::get<0>(GetParam());
  const uint64_t seed_ = std::get<1>(GetParam());
  const WorldConfig exact_config_ = config_of(wiring_, seed_, true);
  World exact_{exact_config_, false, 0};
  World fast_{config_of(wiring_, seed_, false), true, seed_};
  Random random_{seed_ * 1000 + static_cast<uint64_t>(wiring_)};
  RandomTraffic traffic_{exact_, exact_config_, wiring_, random_};
  std::vector<Send> sends_;
  std::vector<Owed> owed_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> needed_;
  std::set<std::pair<uint32_t, uint32_t>> broken_;                   // node, dedicated ring
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Send> posted_;  // node, pair, index
  std::map<uint32_t, model::PortCounts> counts_[2];
  uint32_t since_ = 0;
  uint32_t more_packets_ = 0;
  bool failed_ = false;
  size_t taken_ = 0;
};

TEST_P(Same, TrafficHasTheSameResults) {
  for (uint32_t round = 0; round < kRounds && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << seed_ << " round " << round);
    if (random_.one_in(3)) {
      scarce();
    } else {
      plenty();
    }
  }
  EXPECT_GT(taken_, 5 * kRounds);
}

INSTANTIATE_TEST_SUITE_P(
    Wirings, Same,
    testing::Combine(testing::Values(Wiring::kLoop, Wiring::kCable, Wiring::kRings, Wiring::kPulls,
                                     Wiring::kBytesBehind, Wiring::kMapped),
                     testing::Range<uint64_t>(1, 1 + env_number("RIO_SOAK_SEEDS", 8))));

}  // namespace
}  // namespace rio::test

/// @file
/// Random messages and doorbells for the comparison of fpga/model/fast with fpga/model/reference.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/unit/fpga/model/same_world.hpp"

namespace rio::test {

using Control = regs::tx_desc::Control;

inline constexpr uint32_t kSsize128 = 13;
inline constexpr uint32_t kSsize256 = 14;
inline constexpr uint64_t kNowhere = 0x1000;  // a bus address that is never mapped

/// Number of segments of a message.
[[nodiscard]] inline uint32_t segments_of(const regs::TxDesc& desc) {
  const uint32_t log2 = Control::ssize.get(desc.control) - 6;
  return std::max(1u, (desc.length + (1u << log2) - 1) >> log2);
}

/// A random configuration. @param exact segment by segment.
[[nodiscard]] inline WorldConfig config_of(Wiring wiring, uint64_t seed, bool exact) {
  Random random(seed * 77);
  WorldConfig config;
  config.wiring = wiring;
  config.card.exact = exact;
  config.card.queue_pairs = 1 + random.below(2);
  config.card.letters = random.one_in(3) ? 1 + random.below(4) : 4;
  config.card.tx_contexts = random.one_in(3) ? 2 : 64;
  // In fast mode a card passes over the head of the ring later than segment by segment.
  config.card.pass_over = 0;
  config.card.quirk_last_at_256 = config.card.quirk_last_full_256 = !random.one_in(4);
  config.retry_limit = random.one_in(4) ? 3 : 0;
  config.start = random.one_in(2) ? 0xFFFFFF80 + random.below(64) : random.below(2) << 15;
  return config;
}

/// Makes descriptors, right and wrong ones. Nothing is posted here.
class RandomTraffic {
 public:
  /// @param world whose addresses and queues the messages use; it and `random` outlive this object.
  RandomTraffic(const World& world, const WorldConfig& config, Wiring wiring, Random& random)
      : world_(world), config_(config), wiring_(wiring), random_(random) {
    for (uint32_t node = 0; node < world.nodes(); ++node) {
      for (uint32_t pair = 0; pair < world.pairs(); ++pair) {
        spots_.push_back({node, pair});
      }
    }
  }
  /// All queue pairs of the world.
  [[nodiscard]] const std::vector<Spot>& spots() const { return spots_; }
  [[nodiscard]] Spot any_spot() {
    return spots_[random_.below(static_cast<uint32_t>(spots_.size()))];
  }
  /// A cookie that no message has had.
  [[nodiscard]] uint32_t next_cookie() { return next_cookie_++; }
  [[nodiscard]] Spot any_target(Spot from) {
    for (;;) {
      const Spot to = any_spot();
      if (to.node != from.node || wiring_ == Wiring::kLoop) {
        return to;
      }
    }
  }
  [[nodiscard]] uint64_t any_address(Spot from) {
    return world_.tx_bytes(from.node) + 8 * random_.below((World::kTxBytes - 4096) / 8);
  }
  /// A plain message to the shared queue of another pair, by address.
  [[nodiscard]] Send plain(Spot from) {
    Send send;
    send.from = from;
    const Spot to = any_target(from);
    send.desc.dest_id = World::dest_id(to);
    send.desc.cookie = next_cookie();
    send.desc.length = any_length();
    send.desc.addr = any_address(from);
    const bool dedicated = dedicated_to(to, from);
    const uint32_t mbox =
        send.desc.length > 256 ? random_.below(dedicated ? 2 : 4) : random_.below(63);
    set(&send, Control::ssize.put(kSsize256) |
                   Control::mbox.put(dedicated && (mbox == 2 || mbox == 3) ? mbox + 4 : mbox));
    return send;
  }
  [[nodiscard]] bool dedicated_to(Spot to, Spot from) const {
    const Spot source = world_.dedicated_source(to.node);
    return to.pair == 0 && source.node == from.node && source.pair == from.pair;
  }
  static void set(Send* send, uint32_t control) { send->desc.control = control; }
  static void add(Send* send, uint32_t bits) { send->desc.control |= bits; }

  /// Any message or doorbell that a host may post.
  [[nodiscard]] Send any_send(Spot from) {
    Send send = plain(from);
    switch (random_.below(24)) {
      case 0:
        set(&send, Control::op.put(static_cast<uint32_t>(regs::TxOp::kDoorbell)));
        send.desc.addr = random_.below(0x10000);
        break;
      case 1:
        spoil(&send);
        break;
      case 2:
        send.desc.addr = kNowhere;
        break;
      case 3:
        send.desc.length = 1 + random_.below(256);
        // No queue pair receives from this mailbox.
        set(&send, Control::ssize.put(kSsize256) | Control::mbox.put(63));
        break;
      case 4:
      case 5:
        send.desc.length = 1 + random_.below(regs::kInlineBytes);
        send.desc.addr = random_.next();
        send.desc.aux = random_.next();
        add(&send, Control::inline_.put(1));
        break;
      case 6:
        widen_inline(&send);
        break;
      case 7:
        widen(&send);
        break;
      case 8:
        other_ssize(&send);
        break;
      case 9:
      case 10:
        add(&send, Control::order.put(1));
        break;
      case 11:
        add(&send, Control::prio.put(random_.below(3)));
        break;
      case 12:
        send.desc.dest_id = 0x7700;  // no card has this destID
        break;
      default:
        break;
    }
    return send;
  }

 private:
  [[nodiscard]] uint32_t any_length() {
    const bool short_only = config_.retry_limit != 0;
    const uint32_t most[] = {64, 256, short_only ? 256u : 4096u};
    return 1 + random_.below(most[random_.below(3)]);
  }
  /// Changes a descriptor so that it breaks the contract.
  void spoil(Send* send) {
    switch (random_.below(5)) {
      case 0:
        send->desc.length = random_.one_in(2) ? 0 : 4097;
        break;
      case 1:
        send->desc.addr += 4;
        break;
      case 2:
        send->desc.control = Control::ssize.put(8) | Control::mbox.put(5);
        break;
      case 3:
        add(send, Control::prio.put(3));
        break;
      default:
        send->desc.length = 300;
        set(send, Control::ssize.put(kSsize256) | Control::mbox.put(4 + random_.below(50)));
    }
  }
  void widen_inline(Send* send) {
    send->wide = true;
    send->desc.length = 1 + random_.below(regs::kInlineBytes + sizeof(regs::TxWide));
    send->desc.addr = random_.next();
    send->desc.aux = random_.next();
    send->second.addr1 = random_.next();
    send->second.addr2 = random_.next();
    send->second.addr3 = random_.next();
    send->second.len1 = static_cast<uint16_t>(random_.next());
    add(send, Control::inline_.put(1) | Control::units.put(1));
  }
  void widen(Send* send) {
    send->wide = true;
    const uint32_t pieces = 2 + random_.below(3);
    const uint32_t each = send->desc.length > 256 ? 1000 : 64;
    uint32_t len[4] = {};
    uint32_t total = 0;
    for (uint32_t i = 0; i < pieces; ++i) {
      len[i] = 1 + random_.below(each);
      len[i] = i + 1 < pieces ? (len[i] + 7) & ~7u : len[i];
      total += len[i];
    }
    send->desc.length = total;
    send->desc.aux = len[0];
    send->second = {any_address(send->from),
                    any_address(send->from),
                    any_address(send->from),
                    static_cast<uint16_t>(len[1]),
                    static_cast<uint16_t>(len[2]),
                    static_cast<uint16_t>(len[3]),
                    0};
    add(send, Control::units.put(1) | Control::addrs.put(pieces));
  }
  void other_ssize(Send* send) {
    const uint32_t code = 9 + random_.below(5);
    const uint32_t most = config_.retry_limit != 0 ? 1 : 16;
    send->desc.length = 1 + random_.below((1u << (code - 6)) * most);
    const uint32_t mbox = segments_of({Control::ssize.put(code), 0, 0, send->desc.length, 0, 0}) > 1
                              ? random_.below(2)
                              : 4 + random_.below(50);
    set(send, Control::ssize.put(code) | Control::mbox.put(mbox));
  }

  const World& world_;
  const WorldConfig config_;
  const Wiring wiring_;
  Random& random_;
  std::vector<Spot> spots_;
  uint32_t next_cookie_ = 1;
};

/// Compares results in order within each group, or in any order if `any_order`.
template <class Result, class Group>
void compare_grouped(std::vector<Result>& exact, std::vector<Result>& fast, bool any_order,
                     Group group) {
  for (auto* all : {&exact, &fast}) {
    if (any_order) {
      std::sort(all->begin(), all->end());
    }
    std::stable_sort(all->begin(), all->end(),
                     [&](const Result& a, const Result& b) { return group(a) < group(b); });
  }
  ASSERT_EQ(exact.size(), fast.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_TRUE(exact[i] == fast[i])
        << "number " << i << " of " << exact.size() << ": " << exact[i] << " but " << fast[i];
  }
}

}  // namespace rio::test

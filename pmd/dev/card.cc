#include "pmd/dev/card.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/log.hpp"
#include "pmd/dev/queue_pair.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kDestIdLimits[] = {0xFF, 0xFFFF, 0xFFFFFFFE};

// A generation that differs from both, from 0, and from all ones (which a lost card returns).
[[nodiscard]] uint32_t other_than(uint32_t a, uint32_t b) {
  uint32_t value = a + 1;
  while (value == b || value == 0 || value == regs::kAllOnes) {
    ++value;
  }
  return value;
}

}  // namespace

Card::Card(Bus& bus) : bus_(bus), bar_(bus.bar()), hook_(bus.poll_hook(0)) {}

int Card::identify() {
  if (const int error = blocks_.discover(bar_, bus_.name()); error != 0) {
    return error;
  }
  const char* wrong = "";
  int error = read_caps(bar_, &caps_, &wrong);
  for (uint32_t qp = 0; error == 0 && qp < regs::kMaxQps && caps_.barrier_rounds == 0; ++qp) {
    error = blocks_.has_barrier(qp) ? read_barrier_caps(bar_, qp, &caps_, &wrong) : 0;
  }
  if (error != 0) {
    if (gone()) {
      return failed(-ENODEV, "capabilities", regs::kAllOnes);
    }
    base::log_error("%s: capabilities break the contract: %s; update the gateware",
                    bus_.name().c_str(), wrong);
    return error;
  }
  return 0;
}

int Card::open(Bus& bus, const CardConfig& config, std::unique_ptr<Card>* out) {
  std::unique_ptr<Card> card;
  if (const int error = look(bus, &card); error != 0) {
    return error;
  }
  card->timeout_ms_ = config.reset_timeout_ms;
  if (const int error = card->check(config); error != 0) {
    return error;
  }
  if (const int error = card->caps_.is_vf ? card->check_vf(config) : 0; error != 0) {
    return error;
  }
  card->dest_id_limit_ = kDestIdLimits[config.dest_id_size];
  card->silence();
  if (!card->caps_.is_vf) {
    card->write_identity(config);
  }
  int error = card->reset();
  error = error == 0 ? bus.start_dma() : error;
  if (error != 0) {
    return error;
  }
  if (error = card->give_all(config); error != 0) {
    return error;
  }
  std::vector<RxMapEntry> map = config.rx_map;
  for (uint32_t qp = 0; config.rx_map.empty() && qp < config.dest_ids.size(); ++qp) {
    if (config.dest_ids[qp] != kNoDestId) {
      map.push_back({.dest_id = config.dest_ids[qp], .qp = qp});
    }
  }
  if (card->blocks_.has_rx_map()) {
    if (error = card->set_rx_map(map); error != 0) {
      return error;
    }
  }
  *out = std::move(card);
  return 0;
}

int Card::look(Bus& bus, std::unique_ptr<Card>* out) {
  std::unique_ptr<Card> card(new (std::nothrow) Card(bus));
  const int error = card != nullptr ? card->identify() : -ENOMEM;
  if (error == 0) {
    *out = std::move(card);
  }
  return error;
}

int Card::attach(Bus& bus, std::unique_ptr<Card>* out) {
  std::unique_ptr<Card> card;
  if (const int error = look(bus, &card); error != 0) {
    return error;
  }
  const uint32_t asked = card->bar_.read32(regs::id::gen_req());
  const uint32_t answered = card->bar_.read32(regs::id::gen_ack());
  if (asked == 0 || asked != answered) {
    if (card->gone()) {
      return card->failed(-ENODEV, "attach", answered);
    }
    base::log_error(
        "%s: card is not set up (generation %u asked for, %u in force); start its owner "
        "first",
        bus.name().c_str(), asked, answered);
    return -EAGAIN;
  }
  card->generation_ = answered;
  *out = std::move(card);
  return 0;
}

int Card::check(const CardConfig& config) const {
  const char* const card = bus_.name().c_str();
  if (config.dest_id_size >= std::size(kDestIdLimits)) {
    base::log_error("%s: destID size %u; it is 0 (8 bits), 1 (16) or 2 (32)", card,
                    config.dest_id_size);
    return -EINVAL;
  }
  if (config.response_timeout_us == 0 ||
      config.receive_timeout_us > 2ull * config.response_timeout_us) {
    // With a longer one a letter could be used again while a receiver still holds half of its
    // message.
    base::log_error(
        "%s: receive time-out %u us with response time-out %u us; it may be at most twice as "
        "long, on all nodes alike",
        card, config.receive_timeout_us, config.response_timeout_us);
    return -EINVAL;
  }
  if (config.dest_ids.size() > caps_.queue_pairs) {
    base::log_error("%s: %zu destIDs for %u queue pairs; leave some out", card,
                    config.dest_ids.size(), caps_.queue_pairs);
    return -EINVAL;
  }
  for (const uint32_t dest_id : config.dest_ids) {
    if (dest_id == kNoDestId) {
      continue;
    }
    if (dest_id > kDestIdLimits[config.dest_id_size]) {
      base::log_error("%s: destID %u (0x%x) is wider than the %u bits chosen; give one up to %u",
                      card, dest_id, dest_id, 8u << config.dest_id_size,
                      kDestIdLimits[config.dest_id_size]);
      return -EINVAL;
    }
    if (std::count(config.dest_ids.begin(), config.dest_ids.end(), dest_id) > 1) {
      // Answers carry no more than the destID.
      base::log_error(
          "%s: two queue pairs with destID 0x%x; give each its own, and divide the "
          "mailboxes by the receive map",
          card, dest_id);
      return -EINVAL;
    }
  }
  if (config.rx_map.empty()) {
    return 0;
  }
  if (!blocks_.has_rx_map()) {
    base::log_error("%s: the card has no receive map; leave it out", card);
    return -EINVAL;
  }
  return check(config.rx_map);
}

/// Check what the physical function has given to this virtual one.
int Card::check_vf(const CardConfig& config) {
  if (caps_.queue_pairs == 0) {
    base::log_error(
        "%s: this virtual function has no queue pairs; open its physical function first, with a "
        "share for it",
        bus_.name().c_str());
    return -ENOENT;
  }
  for (uint32_t qp = 0; qp < config.dest_ids.size(); ++qp) {
    if (config.dest_ids[qp] != dest_id(qp)) {
      base::log_error(
          "%s: destID 0x%x for queue pair %u; the physical function has given it 0x%x: leave the "
          "destID out",
          bus_.name().c_str(), config.dest_ids[qp], qp, dest_id(qp));
      return -EINVAL;
    }
  }
  return 0;
}

int Card::give_all(const CardConfig& config) {
  std::vector<VfShare> shares = config.vfs;
  if (shares.empty() && config.vf_qps != 0) {
    const uint32_t own = caps_.queue_pairs - std::min(config.vf_qps * caps_.vfs, caps_.queue_pairs);
    if (caps_.vfs == 0 || own == 0) {
      base::log_error(
          "%s: %u queue pairs for each virtual function; the card has %u functions and %u queue "
          "pairs, of which at least one stays with the physical function",
          bus_.name().c_str(), config.vf_qps, caps_.vfs, caps_.queue_pairs);
      return -EINVAL;
    }
    for (uint32_t vf = 0; vf < caps_.vfs; ++vf) {
      shares.push_back({.first = own + vf * config.vf_qps, .count = config.vf_qps});
    }
  }
  for (uint32_t vf = 0; vf < shares.size(); ++vf) {
    if (const int error = give(vf, shares[vf]); error != 0) {
      return error;
    }
  }
  return 0;
}

/// Give queue pairs to a virtual function.
int Card::give(uint32_t vf, const VfShare& share) {
  using regs::vf::Control;
  using regs::vf::Qps;
  if (vf >= caps_.vfs) {
    base::log_error("%s: a share for virtual function %u; the card has %u: leave it out",
                    bus_.name().c_str(), vf, caps_.vfs);
    return -EINVAL;
  }
  const auto refused = [&] {
    base::log_error(
        "%s: virtual function %u cannot have %u queue pairs from %u on; choose among 1 to %u, each "
        "for one function",
        bus_.name().c_str(), vf, share.count, share.first, caps_.queue_pairs - 1);
    return -EINVAL;
  };
  if (share.first >= caps_.queue_pairs || share.count > caps_.queue_pairs) {
    return refused();
  }
  bar_.write32(regs::vf::qps(vf), Qps::first.put(share.first) | Qps::count.put(share.count));
  // release: QPS first; pairs with the card's read of CONTROL.
  bar_.write32(regs::vf::control(vf), Control::gen.put(1) | Control::enable.put(1));
  const uint32_t enabled = Control::gen.put(1) | Control::enable.put(1);
  uint32_t seen = 0;
  const int error =
      wait_for_word(bar_, hook_, regs::vf::status(vf), timeout_ms_, &seen,
                    [](uint32_t value) { return regs::vf::Status::gen.get(value) == 1; });
  if (error != 0) {
    return failed(error, "share of a virtual function", seen);
  }
  if (seen != enabled) {
    return refused();
  }
  given_ |= ((1u << share.count) - 1) << share.first;
  return 0;
}

int Card::check(std::span<const RxMapEntry> entries) const {
  if (entries.size() > regs::kRxMapEntries) {
    base::log_error("%s: receive map of %zu entries; the card holds %u", bus_.name().c_str(),
                    entries.size(), regs::kRxMapEntries);
    return -EINVAL;
  }
  for (const RxMapEntry& entry : entries) {
    if (entry.qp >= caps_.queue_pairs || !blocks_.has_qp(entry.qp)) {
      base::log_error("%s: receive map sends destID 0x%x to queue pair %u; the card has %u",
                      bus_.name().c_str(), entry.dest_id, entry.qp, caps_.queue_pairs);
      return -EINVAL;
    }
  }
  return 0;
}

// Stops the rings: the host's writes before the reset must not start anything after it.
void Card::silence() {
  for (uint32_t qp = 0; qp < caps_.queue_pairs; ++qp) {
    for (uint32_t ring = 0; blocks_.has_qp(qp) && ring < regs::kRingsPerQp; ++ring) {
      bar_.write32(regs::qp::ring_control(qp, ring), 0);
    }
    for (uint32_t i = 0; blocks_.has_window(qp) && i < regs::kWindowsPerQp; ++i) {
      bar_.write32(regs::window::control(qp, i), 0);
    }
  }
  for (uint32_t vf = 0; vf < caps_.vfs; ++vf) {
    bar_.write32(regs::vf::control(vf), 0);
  }
  if (blocks_.has_rail()) {
    bar_.write32(regs::rail::control(), 0);
  }
  if (blocks_.has_rx_map()) {
    for (uint32_t i = 0; i < regs::kRxMapEntries; ++i) {
      bar_.write32(regs::rx_map::entry(i), 0);
    }
    bar_.write32(regs::rx_map::apply(), 0);
  }
}

void Card::write_identity(const CardConfig& config) {
  bar_.write32(regs::id::dest_id_size(), config.dest_id_size);
  bar_.write32(regs::id::response_timeout_us(), config.response_timeout_us);
  bar_.write32(regs::id::receive_timeout_us(), config.receive_timeout_us);
  bar_.write32(regs::id::retry_limit(), config.retry_limit);
  bar_.write32(regs::id::retry_delay_us(), config.retry_delay_us);
  for (uint32_t qp = 0; qp < caps_.queue_pairs; ++qp) {
    bar_.write32(regs::id::qp_dest_id(qp),
                 qp < config.dest_ids.size() ? config.dest_ids[qp] : kNoDestId);
  }
}

int Card::reset() {
  const uint32_t gen =
      other_than(bar_.read32(regs::id::gen_req()), bar_.read32(regs::id::gen_ack()));
  // release: all other words first; pairs with the card's read of GEN_REQ.
  bar_.write32(regs::id::gen_req(), gen);
  const int error = await(regs::id::gen_ack(), gen, "reset");
  generation_ = error == 0 ? gen : 0;
  return error;
}

/// Wait until a word of the card has a value. @param what failed, if it never has, for the log.
int Card::await(uint32_t offset_bytes, uint32_t wanted, const char* what) {
  uint32_t seen = 0;
  const int error = wait_for_word(bar_, hook_, offset_bytes, timeout_ms_, &seen,
                                  [wanted](uint32_t value) { return value == wanted; });
  return failed(error, what, seen);
}

// Passes `error` on, and logs it unless it is 0.
int Card::failed(int error, const char* what, uint32_t seen) const {
  if (error == -ENODEV) {
    return log_gone(bus_.name() + ": " + what);
  }
  if (error != 0) {
    base::log_error(
        "%s: %s: no answer within %u ms (last seen 0x%x); reset the card by its slot, or "
        "allow more time",
        bus_.name().c_str(), what, timeout_ms_, seen);
  }
  return error;
}

int Card::set_dest_id(uint32_t qp, uint32_t dest_id) {
  if (!blocks_.has_qp(qp)) {
    base::log_error("%s: no queue pair %u", bus_.name().c_str(), qp);
    return -ENOENT;
  }
  if (caps_.is_vf) {
    base::log_error(
        "%s: destIDs of a virtual function are the physical function's to give: set it there",
        bus_.name().c_str());
    return -EPERM;
  }
  if (dest_id != kNoDestId && dest_id > dest_id_limit_) {
    base::log_error("%s: destID 0x%x is above 0x%x; choose another", bus_.name().c_str(), dest_id,
                    dest_id_limit_);
    return -EINVAL;
  }
  bar_.write32(regs::id::qp_dest_id(qp), dest_id);
  return await(regs::qp::dest_id(qp), dest_id, "destID");
}

uint32_t Card::dest_id(uint32_t qp) {
  return blocks_.has_qp(qp) ? bar_.read32(regs::qp::dest_id(qp)) : kNoDestId;
}

int Card::set_rx_map(std::span<const RxMapEntry> entries) {
  using regs::rx_map::Entry;
  if (!blocks_.has_rx_map()) {
    base::log_error("%s: the card has no receive map", bus_.name().c_str());
    return -ENOTSUP;
  }
  if (const int error = check(entries); error != 0) {
    return error;
  }
  for (uint32_t i = 0; i < regs::kRxMapEntries; ++i) {
    if (i >= entries.size()) {
      bar_.write32(regs::rx_map::entry(i), 0);
      continue;
    }
    const RxMapEntry& entry = entries[i];
    bar_.write32(regs::rx_map::dest_id(i), entry.dest_id);
    bar_.write64(regs::rx_map::mbox_lo(i), regs::rx_map::mbox_hi(i), entry.mbox_mask);
    bar_.write32(regs::rx_map::entry(i),
                 Entry::valid.put(1) | Entry::doorbells.put(entry.doorbells ? 1 : 0) |
                     Entry::requests.put(entry.requests ? 1 : 0) | Entry::qp.put(entry.qp));
  }
  const uint32_t apply =
      other_than(bar_.read32(regs::rx_map::apply()), bar_.read32(regs::rx_map::applied()));
  // release: the entries first; pairs with the card's read of APPLY.
  bar_.write32(regs::rx_map::apply(), apply);
  return await(regs::rx_map::applied(), apply, "receive map");
}

bool Card::gone() {
  return card_gone(bar_);
}

bool Card::was_reset() {
  return generation_ != 0 && bar_.read32(regs::id::gen_ack()) != generation_ && !gone();
}

LinkState Card::link() {
  if (!blocks_.has_port()) {
    return {caps_.is_vf && !gone(), 0, 0, 0};
  }
  const uint32_t word = bar_.read32(regs::port::link());
  if (word == regs::kAllOnes && gone()) {
    return {};
  }
  return link_state(word);
}

PortCounters Card::counters() {
  if (!blocks_.has_port() || gone()) {
    return {};
  }
  return {bar_.read32(regs::port::tx_packets()),  bar_.read32(regs::port::rx_packets()),
          bar_.read32(regs::port::tx_retries()),  bar_.read32(regs::port::rx_retries()),
          bar_.read32(regs::port::rx_errors()),   bar_.read32(regs::port::tx_timeouts()),
          bar_.read32(regs::port::rx_timeouts()), bar_.read32(regs::port::rx_unmapped())};
}

BarrierCounters Card::barrier_counters(uint32_t qp) {
  namespace at = regs::barrier;
  if (!blocks_.has_barrier(qp) || gone()) {
    return {};
  }
  return {bar_.read32(at::sent(qp)),        bar_.read32(at::received(qp)),
          bar_.read32(at::early(qp)),       bar_.read32(at::nacks_given(qp)),
          bar_.read32(at::nacks_taken(qp)), bar_.read32(at::resent(qp)),
          bar_.read32(at::stale(qp)),       bar_.read32(at::foreign(qp)),
          bar_.read32(at::cancelled(qp))};
}

int Card::open_queue_pair(uint32_t qp, const QueuePairConfig& config,
                          std::unique_ptr<QueuePair>* out) {
  if (qp >= caps_.queue_pairs || !blocks_.has_qp(qp)) {
    base::log_error("%s: no queue pair %u; the card has %u", bus_.name().c_str(), qp,
                    caps_.queue_pairs);
    return -ENOENT;
  }
  if ((given_ >> qp & 1) != 0) {
    base::log_error("%s: queue pair %u belongs to a virtual function; choose another",
                    bus_.name().c_str(), qp);
    return -EBUSY;
  }
  return QueuePair::create(*this, qp, config, out);
}

int Card::check_offset(uint32_t offset_bytes) const {
  if (offset_bytes % 4 != 0) {
    base::log_error("%s: register offset 0x%x; it must be a multiple of 4", bus_.name().c_str(),
                    offset_bytes);
    return -EINVAL;
  }
  if (offset_bytes >= bar_.len_bytes()) {
    base::log_error("%s: register offset 0x%x; BAR0 has 0x%zx bytes", bus_.name().c_str(),
                    offset_bytes, bar_.len_bytes());
    return -ERANGE;
  }
  return 0;
}

int Card::reg_read(uint32_t offset_bytes, uint32_t* value) {
  if (const int error = check_offset(offset_bytes); error != 0) {
    return error;
  }
  const uint32_t word = bar_.read32(offset_bytes);
  if (word == regs::kAllOnes && gone()) {
    return failed(-ENODEV, "register read", word);
  }
  *value = word;
  return 0;
}

int Card::reg_write(uint32_t offset_bytes, uint32_t value) {
  if (const int error = check_offset(offset_bytes); error != 0) {
    return error;
  }
  const BlockList::Owner owner = blocks_.owner_of(offset_bytes);
  if (owner != BlockList::Owner::kHost) {
    base::log_error(
        "%s: register 0x%x %s; choose one that the host writes", bus_.name().c_str(), offset_bytes,
        owner == BlockList::Owner::kCard ? "belongs to the card" : "is in no known block");
    return -EPERM;
  }
  bar_.write32(offset_bytes, value);
  return 0;
}

}  // namespace rio::pmd

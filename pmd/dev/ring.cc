#include "pmd/dev/ring.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "pmd/dev/names.hpp"
#include "pmd/dev/wait.hpp"

namespace rio::pmd {
namespace {

using RingControl = regs::qp::RingControl;
using RingStatus = regs::qp::RingStatus;

constexpr size_t kRingAlign = 4096;
constexpr uint32_t kPushLog2Limit = 15;  // regs: RING_FORMAT.PUSH
constexpr uint32_t kLog2Limit = 19;      // ARM.INDEX must tell a full ring from an empty one

[[nodiscard]] uint32_t phase_not_expected(uint32_t completion_index, uint32_t clog2) {
  // In laps with an even number the expected phase is 1. regs: tx_cpl.status.phase
  const uint32_t lap = completion_index >> clog2;
  return regs::tx_cpl::Status::phase.put(lap & 1u);
}

/// log2 of the completions that a ring of 2^log2 entries needs. @param log2 any value.
[[nodiscard]] uint32_t log2_of_completions(uint32_t log2, uint32_t more) {
  uint32_t clog2 = log2;
  while (clog2 < 32 && (uint64_t{1} << clog2) - (uint64_t{1} << log2) < more) {
    ++clog2;
  }
  return clog2;
}

[[nodiscard]] bool state_is(uint32_t status, regs::RingState state) {
  return RingStatus::state.get(status) == static_cast<uint32_t>(state);
}

}  // namespace

/// For the log: "0000:03:00.0: qp 0 ring tx".
std::string Ring::who() const {
  return bus_->name() + ": qp " + std::to_string(config_.qp) + " ring " + ring_name(config_.ring);
}

Ring::~Ring() {
  (void)stop();  // stop() logs errors
  if (memory_.va != nullptr && !running_) {
    bus_->dma_free(memory_);
  }
}

int Ring::check(const Caps& caps) const {
  if (config_.log2 < caps.ring_log2_min || config_.log2 > caps.ring_log2_max || config_.log2 < 1 ||
      config_.log2 > kLog2Limit) {
    base::log_error("%s: 2^%u entries; the card takes 2^%u to 2^%u", who().c_str(), config_.log2,
                    caps.ring_log2_min, caps.ring_log2_max);
    return -EINVAL;
  }
  if (clog2_ > caps.ring_log2_max || clog2_ > kLog2Limit) {
    base::log_error(
        "%s: 2^%u entries need 2^%u completions, the card has at most 2^%u of each: "
        "choose fewer entries",
        who().c_str(), config_.log2, clog2_, std::min(caps.ring_log2_max, kLog2Limit));
    return -EINVAL;
  }
  if (config_.push && (caps.push_slots == 0 || config_.log2 > kPushLog2Limit)) {
    base::log_error(
        "%s: no push mode: the card has %u slots, the ring 2^%u entries of at most 2^%u; "
        "open it without push",
        who().c_str(), caps.push_slots, config_.log2, kPushLog2Limit);
    return -ENOTSUP;
  }
  if (config_.irq_vector >= 0 && static_cast<uint32_t>(config_.irq_vector) >= caps.vectors) {
    base::log_error("%s: vector %d; the card has %u", who().c_str(), config_.irq_vector,
                    caps.vectors);
    return -EINVAL;
  }
  if (config_.mbox > regs::qp::RingFilter::mbox.max()) {
    base::log_error("%s: mailbox %u; a dedicated queue takes one of 0 to 3", who().c_str(),
                    config_.mbox);
    return -EINVAL;
  }
  return 0;
}

int Ring::start(Bus& bus, const Caps& caps, const RingConfig& config, const RingShape& shape) {
  bus_ = &bus;
  bar_ = bus.bar();
  hook_ = bus.poll_hook(config.qp);
  config_ = config;
  shape_ = shape;
  clog2_ = log2_of_completions(config.log2, shape.more_cpls);
  push_slots_ = config.push ? caps.push_slots : 0;
  if (const int error = check(caps); error != 0) {
    return error;
  }
  if ((bar_.read32(regs::qp::rings(config.qp)) >> config.ring & 1u) == 0) {
    base::log_error("%s: qp %u has no ring %s", bus.name().c_str(), config.qp,
                    ring_name(config.ring));
    return -ENOENT;
  }
  const int in_use = busy(bar_, config.qp, config.ring);
  if (in_use < 0) {
    return fail_start(in_use);
  }
  if (in_use != 0) {
    base::log_error("%s runs already; close its owner, or reset the card", who().c_str());
    return -EBUSY;
  }
  if (const int error = allocate(); error != 0) {
    return error;
  }
  write_config(caps.relaxed);
  running_ = true;
  const int error = command(true);
  return error == 0 ? 0 : fail_start(error);
}

int Ring::allocate() {
  const uint32_t count = 1u << config_.log2;
  cpl_at_ = static_cast<size_t>(shape_.entry_bytes) * count;
  cpl_at_ = (cpl_at_ + 63) & ~size_t{63};  // regs: RING_CBASE is 64-byte aligned
  const size_t len_bytes = cpl_at_ + (static_cast<size_t>(shape_.cpl_bytes) << clog2_);
  if (const int error = bus_->dma_alloc(len_bytes, kRingAlign, &memory_); error != 0) {
    return error;  // the bus names the remedy
  }
  empty_completions();
  return 0;
}

/// Leaves the completions without a word of the card's: no phase says that one is there.
void Ring::empty_completions() {
  const uint32_t count = 1u << clog2_;
  auto* const base = static_cast<uint8_t*>(completions());
  std::memset(base, 0xFF, static_cast<size_t>(shape_.cpl_bytes) * count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = config_.start_index + i;
    const uint32_t last_word =
        ~regs::tx_cpl::Status::phase.mask() | phase_not_expected(index, clog2_);
    uint8_t* const cpl = base + static_cast<size_t>(index & (count - 1)) * shape_.cpl_bytes;
    std::memcpy(cpl + shape_.cpl_bytes - sizeof last_word, &last_word, sizeof last_word);
  }
  clear_slots();
}

/// Fills the slots with zeros, so that none seems to hold an entry.
void Ring::clear_slots() {
  const uint32_t first = regs::qp::base(config_.qp) + regs::kPushSlotsAt;
  for (uint32_t i = 0; i < push_slots_ * sizeof(regs::PushSlot); i += 4) {
    bar_.write32(first + i, 0);
  }
}

void Ring::write_config(bool relaxed) {
  const uint32_t qp = config_.qp;
  const uint32_t ring = config_.ring;
  const uint64_t base = shape_.entry_bytes != 0 ? memory_.iova : 0;
  const uint64_t cbase = memory_.iova + cpl_at_;
  bar_.write64(regs::qp::ring_base_lo(qp, ring), regs::qp::ring_base_hi(qp, ring), base);
  bar_.write64(regs::qp::ring_cbase_lo(qp, ring), regs::qp::ring_cbase_hi(qp, ring), cbase);
  bar_.write32(regs::qp::ring_size(qp, ring),
               regs::qp::RingSize::log2.put(config_.log2) | regs::qp::RingSize::clog2.put(clog2_));
  bar_.write32(regs::qp::ring_start(qp, ring), config_.start_index);
  uint32_t irq = 0;
  if (config_.irq_vector >= 0) {
    irq = regs::qp::RingIrq::vector.put(static_cast<uint32_t>(config_.irq_vector)) |
          regs::qp::RingIrq::enable.put(1) |
          regs::qp::RingIrq::moderation_us.put(config_.irq_moderation_us);
  }
  bar_.write32(regs::qp::ring_irq(qp, ring), irq);
  bar_.write32(regs::qp::ring_format(qp, ring),
               regs::qp::RingFormat::completion.put(shape_.format) |
                   regs::qp::RingFormat::push.put(push_slots_ != 0 ? 1 : 0) |
                   regs::qp::RingFormat::relaxed.put(relaxed ? 1 : 0));
  // Another program may have used these; this driver does not.
  bar_.write32(regs::qp::ring_coalesce(qp, ring), 0);
  bar_.write32(regs::qp::ring_pasid(qp, ring), 0);
  bar_.write32(regs::qp::ring_tph(qp, ring), 0);
  if (irq != 0) {
    // An earlier owner may have left the value of the first arm(), which has ARM.SEQ 1.
    bar_.write32(regs::qp::arm(qp, ring), 0);
  }
  if (ring >= static_cast<uint32_t>(regs::Ring::kDedicated0)) {
    bar_.write32(regs::qp::ring_filter(qp, ring), regs::qp::RingFilter::mbox.put(config_.mbox));
    bar_.write32(regs::qp::ring_source(qp, ring), config_.source);
  }
  write_tail();
}

void Ring::write_tail() {
  // Without submissions the tail counts free completions. regs: TAIL
  const uint32_t free = shape_.entry_bytes != 0 ? 0 : 1u << config_.log2;
  bar_.write32(regs::qp::tail(config_.qp, config_.ring), config_.start_index + free);
}

/// Asks the card to run or stop the ring. @return the generation that the card will answer with.
uint32_t Ring::ask(bool run) {
  const uint32_t control = regs::qp::ring_control(config_.qp, config_.ring);
  const uint32_t status = regs::qp::ring_status(config_.qp, config_.ring);
  // It must differ from the last one asked for, and from the last one answered.
  uint32_t gen = RingControl::gen.get(bar_.read32(control)) + 1;
  if (RingControl::gen.put(gen) == RingStatus::gen.get(bar_.read32(status))) {
    ++gen;
  }
  // release: configuration and ring memory visible first; pairs with the card's read of GEN.
  bar_.write32(control, RingControl::gen.put(gen) | RingControl::run.put(run ? 1 : 0));
  return gen;
}

bool Ring::answers(uint32_t seen, uint32_t gen, bool run) {
  return RingStatus::gen.get(seen) == RingControl::gen.get(RingControl::gen.put(gen)) &&
         (state_is(seen, run ? regs::RingState::kRunning : regs::RingState::kStopped) ||
          (run && state_is(seen, regs::RingState::kError)));  // ERROR gives no memory back
}

int Ring::command(bool run) {
  const uint32_t status = regs::qp::ring_status(config_.qp, config_.ring);
  const uint32_t gen = ask(run);
  const auto answered = [gen, run](uint32_t seen) { return answers(seen, gen, run); };
  uint32_t seen = 0;
  if (const int error = wait_for_word(bar_, hook_, status, config_.timeout_ms, &seen, answered);
      error != 0) {
    return error;
  }
  running_ = !state_is(seen, regs::RingState::kStopped);
  return run && state_is(seen, regs::RingState::kError) ? -EIO : 0;
}

void Ring::begin_stop() {
  stop_gen_ = ask(false);
}

int Ring::stopped() {
  const uint32_t seen = bar_.read32(regs::qp::ring_status(config_.qp, config_.ring));
  if (seen == regs::kAllOnes && card_gone(bar_)) {
    running_ = false;
    return -ENODEV;
  }
  if (!answers(seen, stop_gen_, false)) {
    return 0;
  }
  running_ = false;
  return 1;
}

int Ring::restart(uint32_t start_index) {
  config_.start_index = start_index;
  empty_completions();
  bar_.write32(regs::qp::ring_start(config_.qp, config_.ring), start_index);
  write_tail();
  running_ = true;
  const int error = command(true);
  return error == 0 ? 0 : fail_start(error);
}

int Ring::fail_start(int error) {
  regs::RingError why = regs::RingError::kNone;
  uint32_t entry = 0;
  if (error == -ENODEV) {
    running_ = false;
    return log_gone(who());
  }
  const int now = state(&why, &entry);
  if (error == -EIO) {
    base::log_error("%s: the card refused to start it: %s; %s", who().c_str(), name(why),
                    remedy(why));
    // Only a stopped ring can start: do not leave it in state ERROR for the next user.
    static_cast<void>(command(false));
    return error;
  }
  base::log_error("%s: no answer to the start within %u ms, state %s; reset the card",
                  who().c_str(), config_.timeout_ms, state_name(now));
  return error;  // the destructor asks for the stop before it frees anything
}

int Ring::stop() {
  if (!running_) {
    return 0;
  }
  const int error = command(false);
  if (error == 0) {
    return 0;
  }
  if (error == -ENODEV) {
    running_ = false;
    return log_gone(who());
  }
  const int now = state(nullptr, nullptr);
  base::log_error(
      "%s: not stopped within %u ms, state %s; reset the card. Its memory stays allocated, since "
      "the card may still write it",
      who().c_str(), config_.timeout_ms, state_name(now));
  return error;
}

int Ring::stop_orphan(Bus& bus, uint32_t qp, uint32_t ring, uint32_t timeout_ms) {
  Ring orphan;
  orphan.bus_ = &bus;
  orphan.bar_ = bus.bar();
  orphan.hook_ = bus.poll_hook(qp);
  orphan.config_.qp = qp;
  orphan.config_.ring = ring;
  orphan.config_.timeout_ms = timeout_ms;
  // A stopped ring that was not asked to run since needs no answer of the card.
  orphan.running_ =
      RingControl::run.get(orphan.bar_.read32(regs::qp::ring_control(qp, ring))) != 0 ||
      !state_is(orphan.bar_.read32(regs::qp::ring_status(qp, ring)), regs::RingState::kStopped);
  const int error = orphan.stop();
  orphan.running_ = false;  // the destructor has nothing left to stop
  return error;
}

int Ring::state(regs::RingError* error, uint32_t* entry) {
  const uint32_t status = bar_.read32(regs::qp::ring_status(config_.qp, config_.ring));
  if (status == regs::kAllOnes && card_gone(bar_)) {
    return -ENODEV;
  }
  const uint32_t state = RingStatus::state.get(status);
  if (state > static_cast<uint32_t>(regs::RingState::kError)) {
    return -EPROTO;
  }
  if (error != nullptr) {
    *error = static_cast<regs::RingError>(RingStatus::error.get(status));
  }
  if (entry != nullptr) {
    *entry = bar_.read32(regs::qp::ring_entry(config_.qp, config_.ring));
  }
  return static_cast<int>(state);
}

int Ring::busy(Mmio& bar, uint32_t qp, uint32_t ring) {
  const uint32_t status = bar.read32(regs::qp::ring_status(qp, ring));
  if (status == regs::kAllOnes && card_gone(bar)) {
    return -ENODEV;
  }
  return state_is(status, regs::RingState::kRunning) || state_is(status, regs::RingState::kStopping)
             ? 1
             : 0;
}

}  // namespace rio::pmd

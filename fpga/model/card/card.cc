#include "fpga/model/card.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "fpga/model/card/card_impl.hpp"

namespace rio::model {

size_t Card::bar_bytes(uint32_t queue_pairs) {
  return std::bit_ceil(static_cast<size_t>(queue_pairs + 1) * regs::kQpStrideBytes);
}

int Card::create(const Config& config, Ends ends, std::unique_ptr<Card>* out) {
  const auto whole = [](const FunctionEnds& function) {
    return function.bar != nullptr && function.memory != nullptr;
  };
  if (!valid(config) || !whole(ends) || ends.vfs.size() != config.vfs ||
      !std::all_of(ends.vfs.begin(), ends.vfs.end(), whole) || ends.clock == nullptr ||
      ends.wire == nullptr) {
    return -EINVAL;
  }
  auto impl = std::make_unique<Impl>(config, std::move(ends));
  impl->core.now_ns = impl->core.clock->now_ns();
  impl->control.power_on();
  impl->upkeep.set_link(impl->core.wire->link_up());
  out->reset(new Card(std::move(impl)));
  return 0;
}

Card::Card(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Card::~Card() = default;

void Card::step() {
  Impl& card = *impl_;
  const CardLock::Held held = card.lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  card.enter_thread();
  card.step(true, true);
  CardLock::unlock(held);
}

void Card::step_to_receive() {
  Impl& card = *impl_;
  // As in step_to_send(), slow paths are tail calls.
  const CardLock::Held held = card.lock.try_lock_preferred(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    card.step_to_receive_shared();
    return;
  }
  if (!card.may_look()) [[unlikely]] {
    card.step_or_look_for_barrier(held);
    return;
  }
  card.look(held);
}

void Card::step_to_send() noexcept {
  Impl& card = *impl_;
  // Slow paths are tail calls, so that this function saves no registers.
  const CardLock::Held held = card.lock.try_lock_preferred(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    card.step_to_send_shared();
    return;
  }
  // Each full step decides whether the next ones may use this fast path.
  if (!card.may_kick()) [[unlikely]] {
    card.step_instead(held);
    return;
  }
  card.expect_single();
  const FastTx::Kick kicked = card.engines.fast_tx.kick();
  if (kicked != FastTx::Kick::kSent) [[unlikely]] {
    card.end_kick(kicked, held);
    return;
  }
  --card.kicks;
  CardLock::unlock(held);
}

void Card::step_to_reap() noexcept {
  Impl& card = *impl_;
  const CardLock::Held held = card.lock.try_lock(&thread_tag);
  if (held != nullptr) [[likely]] {
    card.reap(held);
  }
}

void Card::step_to_start() noexcept {
  Impl& card = *impl_;
  CardLock::Held held = card.lock.try_lock_preferred(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    held = card.lock.try_lock(&thread_tag);
  }
  if (held != nullptr) [[likely]] {
    card.start_barrier(held);
  }
}

void Card::step_surely(uint32_t times) {
  const Impl::Hold hold(*impl_);
  impl_->enter_thread();
  for (; times > 0; --times) {
    impl_->step(true, true);
  }
}

void Card::with_lock(void (*fn)(void* arg), void* arg) {
  const Impl::Hold hold(*impl_);
  impl_->core.wire->end_leases();  // it may be memory that goes
  fn(arg);
}

void Card::between_steps(void (*fn)(void* arg), void* arg) {
  const Impl::Hold hold(*impl_);
  fn(arg);
}

void Card::leave() {
  const Impl::Hold hold(*impl_);
  impl_->core.wire->end_leases();
  if (impl_->engines.responder.pending() && !impl_->gone) {
    impl_->engines.responder.flush();
  }
}

bool Card::copies_once(uint32_t dest_id) {
  // The thread that steps the card stays the preferred one.
  CardLock::Held held = impl_->lock.try_lock(&thread_tag);
  held = held != nullptr ? held : impl_->lock.lock();
  const Outbound* const way = impl_->core.wire->route(dest_id);
  const bool copies = !impl_->core.exact && way != nullptr && !way->gone && way->takes_long &&
                      way->pulls != nullptr && way->pulls->load(std::memory_order_relaxed) != 0;
  CardLock::unlock(held);
  return copies;
}

void Card::set_link(bool up) {
  const Impl::Hold hold(*impl_);
  impl_->upkeep.force_down(!up);
  impl_->scan_in = impl_->housekeep_in = 0;  // the next step checks everything
}

void Card::lose_state() {
  const Impl::Hold hold(*impl_);
  impl_->control.lose_state();
}

void Card::vanish() {
  const Impl::Hold hold(*impl_);
  impl_->control.lose_state();  // also drops pending requests of the host
  impl_->gone = true;
  for (uint32_t at = 0; at < bar_bytes(impl_->core.config.queue_pairs); at += 4) {
    impl_->control.tell(at, regs::kAllOnes);
  }
}

void Card::replug_vf(uint32_t vf, const FunctionEnds& ends) {
  const Impl::Hold hold(*impl_);
  impl_->control.replug_vf(vf, ends);
}

void Card::hold_ring(uint32_t queue_pair, uint32_t ring, bool held) {
  const Impl::Hold hold(*impl_);
  if (queue_pair < impl_->core.pairs.size() && ring < regs::kRingsPerQp) {
    impl_->core.pairs[queue_pair].rings[ring].held = held;
  }
}

void Card::set_faults(const FaultConfig& faults) {
  const Impl::Hold hold(*impl_);
  impl_->core.end_gathering();
  impl_->core.faults = Faults(faults);
  impl_->core.exact = always_exact(impl_->core.config) || impl_->core.faults.enabled();
  impl_->core.wire->end_leases();  // faults are drawn for requests
}

Activity Card::activity() {
  const CardLock::Held held = impl_->lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return {.done = 0, .under_way = true};
  }
  impl_->count_kicks();
  const Activity now = impl_->gone ? Activity{} : impl_->upkeep.activity();
  CardLock::unlock(held);
  return now;
}

uint64_t Card::looked_ns() const {
  return impl_->looked_ns.load(std::memory_order_relaxed);
}

Statistics Card::statistics() {
  const Impl::Hold hold(*impl_);
  const Core& core = impl_->core;
  Statistics now{core.counts, core.faults.drawn()};
  for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
    now.pcie[r] = core.pairs[0].rings[r].pcie;
  }
  for (const Function& function : core.functions) {
    const HostPort& host = *function.host;
    now.first_refused_address = now.refused == 0 ? host.first_refused() : now.first_refused_address;
    now.refused += host.refused();
  }
  return now;
}

}  // namespace rio::model

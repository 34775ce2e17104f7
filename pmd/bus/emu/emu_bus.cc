#include "pmd/bus/emu/emu_bus.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"
#include "fpga/model/card.hpp"
#include "fpga/name/model_config.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/emu/join.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kVectors = 64;
constexpr size_t kBarAlign = 4096;
/// Enough for a card to see that a ring was armed, and to take all that a wire holds.
constexpr uint32_t kStepsBeforeSleep = 64;
/// Steps of a card that is not polled, each time that frames have come: enough that the card looks
/// at its clock and at the slots of barriers.
constexpr uint32_t kStepsWhileAway = 20;

/// Interrupts as eventfds, each made when it is asked for.
class EventFds final : public model::IrqSink {
 public:
  ~EventFds() override {
    for (std::atomic<int>& fd : fds_) {
      if (fd >= 0) {
        close(fd);
      }
    }
  }
  EventFds() { std::fill(std::begin(fds_), std::end(fds_), -1); }
  EventFds(const EventFds&) = delete;
  EventFds& operator=(const EventFds&) = delete;

  /// The wire of a card whose thread may sleep; null: none. Before the card is stepped.
  void set_member(wire::Member* member) { member_ = member; }

  void raise(uint32_t vector) override {
    if (member_ != nullptr) {
      member_->set_asleep(false);  // the thread that is woken polls
    }
    const int fd = vector < kVectors ? fds_[vector].load() : -1;
    if (fd >= 0) {
      base::wake(fd);
    }
  }

  int fd(uint32_t vector) {
    if (vector >= kVectors) {
      return -ENOTSUP;
    }
    if (fds_[vector] < 0) {
      const int made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
      if (made < 0) {
        return -errno;
      }
      fds_[vector] = made;
    }
    return fds_[vector];
  }

 private:
  void release() const {
    for (const std::atomic<int>& fd : fds_) {
      base::release_in_child(fd);
    }
  }

  std::atomic<int> fds_[kVectors];
  wire::Member* member_ = nullptr;
  // A forked child must neither wake its parent nor consume the parent's wake-ups.
  const base::InChild in_child_{[](void* ctx) { static_cast<EventFds*>(ctx)->release(); }, this};
};

}  // namespace

class EmuBus::Impl final : public EmuBus, public Emulation {
 public:
  /// @param bar of a card that another process steps; empty: start() makes the card.
  Impl(std::string name, std::shared_ptr<EmuMemory> memory, const DmaMemory& bar = {})
      : name_(std::move(name)), memory_(std::move(memory)), bar_(bar) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() override;

  /// Make the card. Call once. @param joined its end of the wire. @return as EmuBus::create().
  [[nodiscard]] int start(const EmuConfig& config, Joined joined);

  Mmio bar() override { return {bar_.va, bar_.len_bytes}; }
  Emulation& emulation() override { return *this; }
  PollHook step_hook(uint32_t /*qp*/) override { return hook<&Impl::step>(); }
  PollHook step_to_receive_hook(uint32_t /*qp*/) override { return hook<&Impl::step_to_receive>(); }
  PollHook step_to_send_hook(uint32_t /*qp*/) override { return hook<&Impl::step_to_send>(); }
  PollHook step_to_reap_hook(uint32_t /*qp*/) override { return hook<&Impl::step_to_reap>(); }
  PollHook step_to_start_hook(uint32_t /*qp*/) override { return hook<&Impl::step_to_start>(); }
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override {
    between_steps([&] { memory_->free(memory); });
  }
  void* shared_alloc(size_t len_bytes, size_t align_bytes) override {
    return memory_->shared_alloc(len_bytes, align_bytes);
  }
  void shared_free(void* memory) override { memory_->shared_free(memory); }
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override {
    return memory_->map(va, len_bytes, runs);
  }
  int dma_unmap(void* va, size_t len_bytes) override {
    int rc = 0;
    between_steps([&] { rc = memory_->unmap(va, len_bytes); });
    return rc;
  }
  bool maps_addresses() const override { return true; }
  int dma_map_at(void* va, uint64_t iova, size_t len_bytes) override {
    return memory_->map_at(va, iova, len_bytes);
  }
  int irq_fd(uint32_t vector) override;
  bool wakes() const override { return member_ != nullptr; }
  void before_sleep() override;
  int set_faults(uint64_t seed, double rate) override;
  bool leave_to_others() override;
  std::string address() const override { return member_ == nullptr ? "" : member_->address(); }
  int reach(const std::string& address, uint32_t* dest_id) override {
    return member_ == nullptr ? -ENOTSUP : member_->reach(address, dest_id);
  }
  int why_unreachable(uint32_t dest_id) override {
    return member_ == nullptr ? 0 : member_->why_unreachable(dest_id);
  }
  bool shows_messages() const override { return shows_memory_; }
  bool copies_once(uint32_t dest_id) override {
    return card_ != nullptr && is_ours() && card_->copies_once(dest_id);
  }
  uint32_t dest_id() const override { return member_ == nullptr ? 0 : member_->first_id(); }
  const std::string& name() const override { return name_; }
  model::Card* card() override { return card_.get(); }
  const DmaMemory& bar_memory() const override { return bar_; }

 private:
  /// Whether this process made the card, rather than being forked since: a forked child has no
  /// threads of the card, and one of these may have held any lock at the fork.
  [[nodiscard]] bool is_ours() const { return owner_ == getpid(); }
  template <void (*kStep)(void* ctx) noexcept>
  [[nodiscard]] PollHook hook() const {
    return stepping_ == Stepping::kInline ? PollHook{kStep, card_.get()} : PollHook{};
  }
  /// Call a function while the card is in no step, which may hold a pointer into the window.
  template <class Function>
  void between_steps(Function function) {
    if (card_ != nullptr && is_ours()) {
      card_->with_lock([](void* arg) { (*static_cast<Function*>(arg))(); }, &function);
    } else {
      function();
    }
  }
  void tell_troubles() const;
  // By their names scripts/lib/bench/callgrind.py tells the card's work from the driver's.
  static void step(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step(); }
  static void step_to_send(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step_to_send(); }
  static void step_to_reap(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step_to_reap(); }
  static void step_to_start(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step_to_start(); }
  static void step_to_receive(void* ctx) noexcept {
    static_cast<model::Card*>(ctx)->step_to_receive();
  }
  static bool poke(void* ctx);
  bool poke_awake();

  const std::string name_;
  std::shared_ptr<void> plug_;      // in a cable of this process, until the wire is gone
  bool shows_memory_ = false;       // partners may map it
  wire::Member* member_ = nullptr;  // the card's wire, if it is such
  Stepping stepping_ = Stepping::kManual;
  const std::shared_ptr<EmuMemory> memory_;
  DmaMemory bar_;
  bool owns_bar_ = false;
  bool left_to_others_ = false;
  uint64_t seen_looked_ns_ = 0;  // the last Card::looked_ns() that poke() saw
  model::HostClock clock_;
  EventFds irqs_;
  std::unique_ptr<model::Card> card_;  // before `thread_`: destroyed after it
  std::jthread thread_;
  const int owner_ = getpid();
};

void EmuBus::Impl::tell_troubles() const {
  std::string text;
  while (member_->next_trouble(&text)) {
    base::log_warning("%s: %s", name_.c_str(), text.c_str());
  }
}

/// Called by the wire's thread when a partner has come or gone, or rings. The thread that usually
/// polls may sleep.
bool EmuBus::Impl::poke(void* ctx) {
  auto* self = static_cast<Impl*>(ctx);
  self->tell_troubles();
  if (!self->member_->asleep()) {
    return self->poke_awake();
  }
  self->card_->step_surely(kStepsBeforeSleep);
  return self->member_->asleep() && self->card_->activity().under_way;
}

/// poke() for a card whose owner is awake, but may compute instead of polling. An owner that polls
/// is left alone: each look at its card takes the preference of the card's lock from it.
bool EmuBus::Impl::poke_awake() {
  const uint64_t looked_ns = card_->looked_ns();
  const bool is_polled = std::exchange(seen_looked_ns_, looked_ns) != looked_ns;
  if (is_polled && member_->has_unpolled_work() && !member_->unattended()) {
    return false;  // the next regular call finds out whether the owner still polls
  }
  const model::Activity before = card_->activity();
  if (member_->unattended() || (before.barriers && !is_polled)) {
    card_->step_surely(kStepsWhileAway);
    const model::Activity after = card_->activity();
    seen_looked_ns_ = card_->looked_ns();
    return after.under_way || after.barriers;
  }
  // Frames that waited for a partner are sent even if the card is not polled for a while. Frames
  // that have come are left to the polling thread: this one must not compete with it, nor report it
  // as awake.
  if (before.posted) {
    card_->step();
  }
  return before.barriers;
}

EmuBus::Impl::~Impl() {
  const bool ours = is_ours();
  if (thread_.joinable() && ours) {
    thread_.request_stop();
    thread_.join();
  } else if (thread_.joinable()) {
    thread_.detach();
  }
  if (card_ != nullptr && member_ != nullptr && ours) {
    member_->set_poke(nullptr, nullptr);
  }
  if (card_ != nullptr && ours) {
    card_->leave();
  }
  card_.reset();
  plug_.reset();
  if (left_to_others_ && ours) {
    bar().write32(regs::id::magic(), regs::kAllOnes);
  }
  if (owns_bar_) {
    memory_->free(bar_);
  }
}

int EmuBus::Impl::start(const EmuConfig& config, Joined joined) {
  plug_ = std::move(joined.plug);
  shows_memory_ = joined.shows_memory;
  stepping_ = config.model.stepping;
  model::Config card = name::model_config(config.model);
  card.queue_pairs = joined.queue_pairs;
  const size_t bar_bytes = model::Card::bar_bytes(card.queue_pairs);
  if (const int rc = memory_->alloc(bar_bytes, kBarAlign, &bar_); rc != 0) {
    base::log_error(
        "emulated card: no %zu bytes for its BAR: free memory or take fewer queue pairs",
        bar_bytes);
    return rc;
  }
  owns_bar_ = true;
  model::Ends ends;
  ends.bar = static_cast<uint8_t*>(bar_.va);
  ends.memory = &memory_->view();
  ends.clock = &clock_;
  ends.irqs = &irqs_;
  ends.wire = std::move(joined.wire);
  if (const int rc = model::Card::create(card, std::move(ends), &card_); rc != 0) {
    return rc;
  }
  if (joined.member != nullptr) {
    member_ = joined.member;
    irqs_.set_member(member_);
    member_->set_poke(&Impl::poke, this);
    tell_troubles();  // failures of joining the fabric
  }
  if (stepping_ != Stepping::kThread) {
    return 0;
  }
  const auto serve = [this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      card_->step();
      std::this_thread::yield();
    }
  };
  const int rc = base::start_thread("rio-card", serve, &thread_);
  if (rc != 0) {
    base::log_error("%s: %s", name_.c_str(), base::why_no_thread(rc).c_str());
  }
  return rc;
}

int EmuBus::create(const EmuConfig& config, std::shared_ptr<EmuMemory> memory,
                   std::unique_ptr<EmuBus>* out) {
  // The grammar of names sees to these.
  assert(config.model.queue_pairs >= 1 && config.model.queue_pairs <= regs::kMaxQps);
  assert(config.model.fault_rate >= 0.0 && config.model.fault_rate <= 1.0);
  if (memory == nullptr) {
    memory = own_memory();
  }
  Joined joined;
  if (const int rc = join(config, memory->readable_areas(), &joined); rc != 0) {
    return rc;
  }
  auto bus = std::make_unique<Impl>(joined.name, std::move(memory));
  const int rc = bus->start(config, std::move(joined));
  if (rc == 0) {
    *out = std::move(bus);
  }
  return rc;
}

std::unique_ptr<EmuBus> EmuBus::attach(const DmaMemory& bar, std::shared_ptr<EmuMemory> memory,
                                       const std::string& name) {
  return std::make_unique<Impl>(name, std::move(memory), bar);
}

int EmuBus::Impl::dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  const int rc = memory_->alloc_readable(len_bytes, align_bytes, out);
  if (rc != 0) {
    base::log_error(
        "%s: no %zu bytes for the card's rings and buffers: take smaller rings or give more "
        "memory",
        name_.c_str(), len_bytes);
  }
  return rc;
}

int EmuBus::Impl::irq_fd(uint32_t vector) {
  const int fd = card_ == nullptr ? -ENOTSUP : irqs_.fd(vector);
  if (fd < 0 && fd != -ENOTSUP) {
    base::log_error("%s: no descriptor for interrupts: %s", name_.c_str(),
                    base::why({"eventfd", fd}).c_str());
  }
  return fd;
}

void EmuBus::Impl::before_sleep() {
  if (member_ == nullptr || stepping_ != Stepping::kInline) {
    return;
  }
  // No memory goes, so a partner that was told where to read may do so while this side sleeps.
  const auto doze = [](void* arg) { static_cast<wire::Member*>(arg)->set_asleep(true); };
  card_->between_steps(doze, member_);
  card_->step_surely(kStepsBeforeSleep);
  if (member_->asleep() && card_->activity().under_way) {
    member_->poke_soon();  // time goes on: for answers that are late, and the like
  }
}

int EmuBus::Impl::set_faults(uint64_t seed, double rate) {
  if (!(rate >= 0.0 && rate <= 1.0)) {
    return -EINVAL;
  }
  if (card_ == nullptr) {
    return -ENOTSUP;
  }
  card_->set_faults({.seed = seed, .rate = rate});
  return 0;
}

bool EmuBus::Impl::leave_to_others() {
  if (!owns_bar_) {
    return false;
  }
  memory_->leave_to_others();
  left_to_others_ = true;
  return true;
}

}  // namespace rio::pmd

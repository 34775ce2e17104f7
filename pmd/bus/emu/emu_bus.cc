#include "pmd/bus/emu/emu_bus.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/fork.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/trouble.hpp"
#include "base/wake_fd.hpp"
#include "fpga/model/card.hpp"
#include "fpga/name/model_config.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/emu/fabric.hpp"
#include "pmd/bus/emu/join.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kVectors = 64;
constexpr size_t kBarAlign = 4096;
/// Enough for a card to see that a ring was armed, and to take all that a wire holds.
constexpr uint32_t kStepsBeforeSleep = 64;
/// Steps of a card that is not polled, each time that frames have come.
constexpr uint32_t kStepsWhileAway = 4;

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
  EventFds() {
    for (std::atomic<int>& fd : fds_) {
      fd = -1;
    }
  }
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

bool valid(const EmuConfig& config) {
  const uint32_t pairs = config.model.queue_pairs;
  if (pairs < 1 || pairs > regs::kMaxQps) {
    base::log_error("emulated card: %u queue pairs asked for; give 1 to 31", pairs);
    return false;
  }
  const double rate = config.model.fault_rate;
  if (!(rate >= 0.0 && rate <= 1.0)) {
    base::log_error("emulated card: fault rate %g; give 0 to 1", rate);
    return false;
  }
  if (const auto* const cable = std::get_if<name::Cable>(&config.wire);
      cable != nullptr && cable->name.empty()) {
    base::log_error("emulated card: empty wire name; give 'loop', or a name that two cards share");
    return false;
  }
  if (const auto* const shm = std::get_if<name::Shm>(&config.wire);
      shm != nullptr && !shm->board.empty() && shm->queue_pair >= pairs) {
    base::log_error("emulated card: queue pair %u of a board of %u; give 0 to %u", shm->queue_pair,
                    pairs, pairs - 1);
    return false;
  }
  return true;
}

}  // namespace

struct EmuBus::Impl {
  std::string name;
  std::string cable;  // empty: another wire, which needs no unplug()
  int side = 0;
  wire::Member* member = nullptr;  // the card's wire, if it is such
  Stepping stepping = Stepping::kManual;
  std::shared_ptr<EmuMemory> memory;
  DmaMemory bar;
  bool owns_bar = false;
  bool left_to_others = false;
  model::HostClock clock;
  EventFds irqs;
  std::unique_ptr<model::Card> card;  // before `thread`: destroyed after it
  std::jthread thread;
  int owner = getpid();

  /// Whether this process made the card, rather than being forked since: a forked child has no
  /// threads of the card, and one of these may have held any lock at the fork.
  [[nodiscard]] bool is_ours() const { return owner == getpid(); }
  void release_wire() const {
    if (!cable.empty()) {
      unplug(cable, side);
    }
  }
  void tell_troubles() const {
    std::string text;
    while (member->next_trouble(&text)) {
      base::log_warning("%s: %s", name.c_str(), text.c_str());
    }
  }
  static void step(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step(); }
  /// Called by the wire's thread when a partner has come or gone, or rings. The thread that usually
  /// polls may sleep.
  static bool poke(void* ctx) {
    auto* self = static_cast<Impl*>(ctx);
    self->tell_troubles();
    if (!self->member->asleep() && self->member->unattended()) {
      self->card->step_surely(kStepsWhileAway);
      return self->card->activity().under_way;
    }
    if (!self->member->asleep()) {
      // Frames that waited for a partner are sent even if the card is not polled for a while.
      // Frames that have come are left to the polling thread: this one must not compete with it,
      // nor report it as awake.
      if (self->card->activity().posted) {
        self->card->step();
      }
      return false;
    }
    self->card->step_surely(kStepsBeforeSleep);
    return self->member->asleep() && self->card->activity().under_way;
  }
  static void step_to_send(void* ctx) noexcept { static_cast<model::Card*>(ctx)->step_to_send(); }
  static void step_to_receive(void* ctx) noexcept {
    static_cast<model::Card*>(ctx)->step_to_receive();
  }
  void serve(const std::stop_token& stop) const {
    while (!stop.stop_requested()) {
      card->step();
      std::this_thread::yield();
    }
  }
};

EmuBus::EmuBus(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EmuBus::~EmuBus() {
  const bool ours = impl_->is_ours();
  if (impl_->thread.joinable() && ours) {
    impl_->thread.request_stop();
    impl_->thread.join();
  } else if (impl_->thread.joinable()) {
    impl_->thread.detach();
  }
  if (impl_->card != nullptr) {
    if (impl_->member != nullptr && ours) {
      impl_->member->set_poke(nullptr, nullptr);
    }
    impl_->card.reset();
    impl_->release_wire();
  }
  if (impl_->left_to_others && ours) {
    bar().write32(regs::id::magic(), regs::kAllOnes);
  }
  if (impl_->owns_bar) {
    impl_->memory->free(impl_->bar);
  }
}

int EmuBus::create(const EmuConfig& config, std::shared_ptr<EmuMemory> memory,
                   std::unique_ptr<EmuBus>* out) {
  if (!valid(config)) {
    return -EINVAL;
  }
  auto impl = std::make_unique<Impl>();
  if (memory == nullptr) {
    memory = own_memory();
  }
  impl->memory = memory;
  impl->stepping = config.model.stepping;
  Joined joined;
  if (const int rc = join(config, &joined); rc != 0) {
    return rc;
  }
  impl->name = joined.name;
  impl->cable = joined.cable;
  impl->side = joined.side;
  impl->member = joined.member;
  model::Config card = name::model_config(config.model);
  card.queue_pairs = joined.queue_pairs;
  model::Ends ends;
  ends.wire = std::move(joined.wire);
  const size_t bar_bytes = model::Card::bar_bytes(card.queue_pairs);
  if (const int rc = memory->alloc(bar_bytes, kBarAlign, &impl->bar); rc != 0) {
    base::log_error(
        "emulated card: no %zu bytes for its BAR: free memory or take fewer queue pairs",
        bar_bytes);
    ends.wire.reset();
    impl->release_wire();
    return rc;
  }
  impl->owns_bar = true;
  ends.bar = static_cast<uint8_t*>(impl->bar.va);
  ends.memory = &memory->view();
  ends.clock = &impl->clock;
  ends.irqs = &impl->irqs;
  if (const int rc = model::Card::create(card, std::move(ends), &impl->card); rc != 0) {
    impl->release_wire();
    memory->free(impl->bar);
    return rc;
  }
  if (impl->member != nullptr) {
    impl->irqs.set_member(impl->member);
    impl->member->set_poke(&Impl::poke, impl.get());
    impl->tell_troubles();  // failures of joining the fabric
  }
  std::unique_ptr<EmuBus> bus(new EmuBus(std::move(impl)));
  if (config.model.stepping == Stepping::kThread) {
    Impl* const self = bus->impl_.get();
    const int rc = base::start_thread(
        "rio-card", [self](const std::stop_token& stop) { self->serve(stop); }, &self->thread);
    if (rc != 0) {
      base::log_error("%s: %s", self->name.c_str(), base::why_no_thread(rc).c_str());
      return rc;
    }
  }
  *out = std::move(bus);
  return 0;
}

int EmuBus::attach(const DmaMemory& bar, std::shared_ptr<EmuMemory> memory, const std::string& name,
                   std::unique_ptr<EmuBus>* out) {
  auto impl = std::make_unique<Impl>();
  impl->bar = bar;
  impl->memory = std::move(memory);
  impl->name = name;
  out->reset(new EmuBus(std::move(impl)));
  return 0;
}

Mmio EmuBus::bar() {
  return {impl_->bar.va, impl_->bar.len_bytes};
}

PollHook EmuBus::step_hook(uint32_t /*qp*/) {
  if (impl_->stepping != Stepping::kInline) {
    return {};
  }
  return {&Impl::step, impl_->card.get()};
}

PollHook EmuBus::step_to_send_hook(uint32_t /*qp*/) {
  if (impl_->stepping != Stepping::kInline) {
    return {};
  }
  return {&Impl::step_to_send, impl_->card.get()};
}

PollHook EmuBus::step_to_receive_hook(uint32_t /*qp*/) {
  if (impl_->stepping != Stepping::kInline) {
    return {};
  }
  return {&Impl::step_to_receive, impl_->card.get()};
}

int EmuBus::dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  const int rc = impl_->memory->alloc(len_bytes, align_bytes, out);
  if (rc != 0) {
    base::log_error(
        "%s: no %zu bytes for the card's rings and buffers: take smaller rings or give more "
        "memory",
        impl_->name.c_str(), len_bytes);
  }
  return rc;
}

void* EmuBus::shared_alloc(size_t len_bytes, size_t align_bytes) {
  return impl_->memory->shared_alloc(len_bytes, align_bytes);
}

void EmuBus::shared_free(void* memory) {
  impl_->memory->shared_free(memory);
}

void EmuBus::dma_free(const DmaMemory& memory) {
  struct Args {
    EmuMemory* from;
    const DmaMemory* memory;
  } args{impl_->memory.get(), &memory};
  const auto free_it = [](void* arg) {
    const auto* a = static_cast<Args*>(arg);
    a->from->free(*a->memory);
  };
  // Not while the card is in a step: it may hold a pointer into the window.
  if (impl_->card != nullptr && impl_->is_ours()) {
    impl_->card->with_lock(free_it, &args);
  } else {
    free_it(&args);
  }
}

int EmuBus::dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  return impl_->memory->map(va, len_bytes, runs);
}

int EmuBus::dma_map_at(void* va, uint64_t iova, size_t len_bytes) {
  return impl_->memory->map_at(va, iova, len_bytes);
}

int EmuBus::dma_unmap(void* va, size_t len_bytes) {
  struct Args {
    EmuMemory* from;
    void* va;
    size_t len;
    int rc;
  } args{impl_->memory.get(), va, len_bytes, 0};
  const auto unmap_it = [](void* arg) {
    auto* a = static_cast<Args*>(arg);
    a->rc = a->from->unmap(a->va, a->len);
  };
  if (impl_->card != nullptr && impl_->is_ours()) {
    impl_->card->with_lock(unmap_it, &args);
  } else {
    unmap_it(&args);
  }
  return args.rc;
}

int EmuBus::irq_fd(uint32_t vector) {
  const int fd = impl_->card == nullptr ? -ENOTSUP : impl_->irqs.fd(vector);
  if (fd < 0 && fd != -ENOTSUP) {
    base::log_error("%s: no descriptor for interrupts: %s", impl_->name.c_str(),
                    base::why({"eventfd", fd}).c_str());
  }
  return fd;
}

bool EmuBus::wakes() const {
  return impl_->member != nullptr;
}

void EmuBus::before_sleep() {
  if (impl_->member == nullptr || impl_->stepping != Stepping::kInline) {
    return;
  }
  impl_->card->with_lock([](void* arg) { static_cast<wire::Member*>(arg)->set_asleep(true); },
                         impl_->member);
  impl_->card->step_surely(kStepsBeforeSleep);
  if (impl_->member->asleep() && impl_->card->activity().under_way) {
    impl_->member->poke_soon();  // time goes on: for answers that are late, and the like
  }
}

std::string EmuBus::address() const {
  return impl_->member == nullptr ? "" : impl_->member->address();
}

int EmuBus::reach(const std::string& address, uint32_t* dest_id) {
  return impl_->member == nullptr ? -ENOTSUP : impl_->member->reach(address, dest_id);
}

int EmuBus::why_unreachable(uint32_t dest_id) {
  return impl_->member == nullptr ? 0 : impl_->member->why_unreachable(dest_id);
}

uint32_t EmuBus::dest_id() const {
  return impl_->member == nullptr ? 0 : impl_->member->first_id();
}
const std::string& EmuBus::name() const {
  return impl_->name;
}
int EmuBus::numa_node() const {
  return -1;
}
model::Card* EmuBus::card() {
  return impl_->card.get();
}

int EmuBus::set_faults(uint64_t seed, double rate) {
  if (!(rate >= 0.0 && rate <= 1.0)) {
    return -EINVAL;
  }
  if (impl_->card == nullptr) {
    return -ENOTSUP;
  }
  model::FaultConfig faults;
  faults.seed = seed;
  faults.rate = rate;
  impl_->card->set_faults(faults);
  return 0;
}

bool EmuBus::leave_to_others() {
  if (!impl_->owns_bar) {
    return false;
  }
  impl_->memory->leave_to_others();
  impl_->left_to_others = true;
  return true;
}

const DmaMemory& EmuBus::bar_memory() const {
  return impl_->bar;
}

}  // namespace rio::pmd

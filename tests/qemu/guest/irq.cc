// Sleeping until a message arrives, as in programs that must not burn a core: arm, check once more,
// sleep in epoll, poll again.
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/qemu/guest/guest.hpp"

namespace rio::guest {
namespace {

constexpr uint32_t kRounds = 20;
constexpr uint32_t kRings =
    pmd::ring_bit(regs::Ring::kShared) | pmd::ring_bit(regs::Ring::kDoorbell);

/// An epoll descriptor with one descriptor in it.
class Epoll {
 public:
  explicit Epoll(int fd) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    ok_ = epoll_ >= 0 && epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
  }
  ~Epoll() { close(epoll_); }
  Epoll(const Epoll&) = delete;
  Epoll& operator=(const Epoll&) = delete;

  /// @return whether it became readable within the time.
  [[nodiscard]] bool sleep(int timeout_ms) const {
    epoll_event event{};
    return ok_ && epoll_wait(epoll_, &event, 1, timeout_ms) == 1;
  }

 private:
  int epoll_;
  bool ok_;
};

/// Sends from another queue pair, on another thread, on request.
class Sender {
 public:
  Sender(Station& station, uint32_t dest_id)
      : station_(station), dest_id_(dest_id), thread_([this] { serve(); }) {}
  ~Sender() {
    end_ = true;
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Asks for a doorbell if the number is odd, otherwise for a message; it arrives a little later.
  void ask(uint32_t number) { asked_.store(number); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void serve() {
    for (uint32_t done = 0; !end_;) {
      const uint32_t number = asked_.load();
      if (number == done) {
        usleep(1000);
        continue;
      }
      usleep(20'000);  // by then the other thread is usually asleep, though it need not be
      pmd::TxMessage out{};
      out.iova = station_.memory().iova;
      out.length_bytes = 64;
      out.dest_id = dest_id_;
      if (number % 2 == 1) {
        out.info = number;
        out.flags = pmd::TxFlags::kDoorbell;
      }
      pmd::TxDone sent{};
      failed_ = failed_ || !station_.send(out, &sent) || sent.status != pmd::Status::kOk;
      done = number;
    }
  }

  Station& station_;
  uint32_t dest_id_;
  std::atomic<uint32_t> asked_{0};
  std::atomic<bool> end_{false};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

/// Takes all messages and doorbells. @return how many.
uint32_t take(Station& card) {
  pmd::RxMessage in{};
  pmd::DoorbellEvent bell{};
  uint32_t n = card.card().doorbells().burst(&bell, 1);
  if (card.card().shared().burst(&in, 1) == 1) {
    const auto index = static_cast<uint32_t>(in.cookie);
    const pmd::RxBuffer buffer{card.card().buffers()->iova(index), index};
    n += card.card().shared().post(&buffer, 1);
  }
  return n;
}

}  // namespace

/// interrupts CARD: a card with two queue pairs.
int interrupts(const Arguments& args) {
  Station card;
  Station other;
  EndpointConfig config;
  config.irq_rings = kRings;
  EndpointConfig beside;
  beside.queue_pair = 1;
  if (!card.open(args[0], config) || !other.open_beside(card, beside)) {
    return 1;
  }
  const Epoll epoll(card.card().irq_fd());
  if (card.card().irq_arm(kRings) != 0 || take(card) != 0 || epoll.sleep(50)) {
    return fail("an interrupt, or a message, before anything was sent");
  }
  Sender sender(other, card.dest_id());
  uint64_t raised_all = 0;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    sender.ask(round);
    // Only an interrupt ends this in time.
    if (!epoll.sleep(30'000)) {
      return fail("no interrupt in round %u", round);
    }
    uint64_t raised = 0;
    if (read(card.card().irq_fd(), &raised, sizeof(raised)) != sizeof(raised)) {
      return fail("the descriptor is readable, and has nothing");
    }
    raised_all += raised;
    if (take(card) != 1) {
      return fail("woken in round %u, and nothing came", round);
    }
    // Arm the ring that raised it; the other one is still armed.
    if (card.card().irq_arm(round % 2 == 1 ? pmd::ring_bit(regs::Ring::kDoorbell)
                                           : pmd::ring_bit(regs::Ring::kShared)) != 0) {
      return 1;
    }
  }
  if (raised_all != kRounds || epoll.sleep(50) || sender.failed()) {
    return fail("%llu interrupts in %u rounds", static_cast<unsigned long long>(raised_all),
                kRounds);
  }
  fact("interrupts", raised_all);
  return 0;
}

}  // namespace rio::guest

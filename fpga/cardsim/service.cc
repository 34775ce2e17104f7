#include "fpga/cardsim/service.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

namespace rio::cardsim {
namespace {

using std::chrono::microseconds;

constexpr uint32_t kTurnsPerLook = 16;   // turns between checks of the clock and of work done
constexpr uint32_t kLooksPerServe = 16;  // such checks between checks of sockets
// How long after the last work the loop keeps the CPU, yields it, sleeps briefly.
constexpr microseconds kHot(200);
constexpr microseconds kWarm(2000);
constexpr microseconds kCool(20000);
constexpr microseconds kCold(1000000);
constexpr microseconds kShortSleep(20);
constexpr microseconds kLongSleep(100);
constexpr microseconds kLongestSleep(1000);

}  // namespace

Service::Service(std::vector<std::unique_ptr<SimCard>>& cards, Requests& requests,
                 std::function<void()> reload)
    : cards_(cards), requests_(requests), reload_(std::move(reload)), done_(cards.size(), 0) {
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);  // otherwise a sleep of 20 us takes 70
}

void Service::turn() {
  for (auto& card : cards_) {
    card->begin_turn();
  }
  for (auto& card : cards_) {
    card->step();
  }
}

void Service::obey() {
  if (requests_.lose_state.exchange(false)) {
    for (auto& card : cards_) {
      card->card().lose_state();
    }
  }
  if (requests_.reload.exchange(false)) {
    reload_();
  }
  if (requests_.vanish.exchange(false)) {
    for (auto& card : cards_) {
      card->card().vanish();
    }
  }
}

bool Service::idle(Time now) {
  bool moved = false;
  bool under_way = false;
  for (size_t i = 0; i < cards_.size(); ++i) {
    const model::Activity activity = cards_[i]->card().activity();
    moved = moved || activity.done != done_[i];
    under_way = under_way || activity.under_way;
    done_[i] = activity.done;
  }
  if (moved) {
    moved_at_ = now;
  } else if (under_way && now - moved_at_ >= kHot) {
    sched_yield();  // a message waits for a receiver: let that process run
  }
  return !moved && !under_way;
}

// Returns whether a socket or a doorbell needs attention.
bool Service::rest(Time now) {
  const auto idle_for = now - busy_at_;
  if (idle_for < kWarm) {
    if (idle_for >= kHot) {
      sched_yield();
    }
    return false;
  }
  const microseconds time = idle_for < kCool   ? kShortSleep
                            : idle_for < kCold ? kLongSleep
                                               : kLongestSleep;
  fds_.clear();
  for (const auto& card : cards_) {
    for (const auto& attachment : card->attachments()) {
      attachment->add_wake_fds(&fds_);
    }
  }
  const timespec left{0, std::chrono::nanoseconds(time).count()};
  return ppoll(fds_.data(), fds_.size(), &left, nullptr) > 0;
}

int Service::run(uint32_t seconds, bool stay, const char** why) {
  const Time start = std::chrono::steady_clock::now();
  busy_at_ = moved_at_ = looked_at_ = start;
  bool wanted = true;
  for (uint64_t look = 0; requests_.stop == 0; ++look) {
    const Time now = std::chrono::steady_clock::now();
    ++counts_.looks;
    counts_.longest_pause =
        std::max(counts_.longest_pause, std::chrono::duration_cast<microseconds>(now - looked_at_));
    looked_at_ = now;
    if (seconds != 0 && now - start >= std::chrono::seconds(seconds)) {
      *why = "seconds";
      return 0;
    }
    obey();
    if (wanted || look % kLooksPerServe == 0) {
      for (auto& card : cards_) {
        if (const int rc = card->serve(); rc != 0) {
          return rc;
        }
      }
      if (!stay && std::ranges::all_of(cards_, [](const auto& card) { return card->left(); })) {
        *why = "peers left";
        return 0;
      }
    }
    for (uint32_t i = 0; i < kTurnsPerLook; ++i) {
      turn();
    }
    if (idle(now)) {
      wanted = rest(now);
    } else {
      busy_at_ = now;
      wanted = false;
    }
  }
  *why = "signal";
  return 0;
}

}  // namespace rio::cardsim

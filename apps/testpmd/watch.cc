#include "apps/testpmd/watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <numeric>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/report.hpp"
#include "apps/testpmd/test_run.hpp"

namespace rio::testpmd {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> g_interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);  // the handler may use it

void on_signal(int number) {
  if (g_interrupts.fetch_add(1) > 0) {
    std::signal(number, SIG_DFL);
    (void)std::raise(number);
  }
}

uint64_t failures(const PortFigures& f) {
  return std::accumulate(f.status.begin(), f.status.end(), uint64_t{0});
}

void row(const char* label, const PortFigures& d, const PortFigures& all, double seconds) {
  const double busy = 100 * ratio(d.busy_turns, static_cast<double>(d.turns));
  std::printf("%-12s %14s %14s %12s %12s %9s %5.0f%%\n", label,
              rate_text(d.rx_messages, seconds).c_str(), rate_text(d.tx_messages, seconds).c_str(),
              bandwidth_text(d.rx_bytes, seconds).c_str(), grouped(all.retries).c_str(),
              grouped(failures(all)).c_str(), busy);
}

/// The figures of a run while it goes on: a table that is drawn anew on a terminal, lines
/// elsewhere.
class LiveTable {
 public:
  explicit LiveTable(const Run& run) : run_(run), before_(run.snapshot()) {}
  /// Show what came since the last call.
  void show() {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    const double since_begin = std::chrono::duration<double>(now - begin_).count();
    PortFigures sum;
    PortFigures sum_all;
    std::vector<PortFigures> all = run_.snapshot();
    std::vector<PortFigures> delta;
    for (size_t i = 0; i < before_.size(); ++i) {
      delta.push_back(all[i].since(before_[i]));
      sum += delta[i];
      sum_all += all[i];
    }
    if (!tty_) {
      std::printf("%6.1f s  received %s, %s, %s retries, %s failed\n", since_begin,
                  rate_text(sum.rx_messages, seconds).c_str(),
                  bandwidth_text(sum.rx_bytes, seconds).c_str(), grouped(sum_all.retries).c_str(),
                  grouped(failures(sum_all)).c_str());
    } else {
      if (lines_drawn_ != 0) {
        std::printf("\033[%zuA\033[J", lines_drawn_);
      }
      std::printf("%s, %s bytes, %.1f s\n", run_.mode().name, grouped(run_.size_bytes()).c_str(),
                  since_begin);
      std::printf("%-12s %14s %14s %12s %12s %9s %6s\n", "", "received", "sent", "payload",
                  "retries", "failed", "busy");
      for (size_t i = 0; i < all.size(); ++i) {
        row(all[i].label.c_str(), delta[i], all[i], seconds);
      }
      row("all", sum, sum_all, seconds);
      lines_drawn_ = all.size() + 3;
    }
    std::fflush(stdout);
    before_ = std::move(all);
    last_ = now;
  }

 private:
  const Run& run_;
  const bool tty_ = isatty(STDOUT_FILENO) != 0;
  size_t lines_drawn_ = 0;
  std::vector<PortFigures> before_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
};

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, &action, nullptr);
  }
}

bool interrupted() {
  return g_interrupts.load() != 0;
}

void forget_interrupt() {
  g_interrupts.store(0);
}

void watch(TestRun& session) {
  using std::chrono::milliseconds;
  Run& run = *session.running();
  LiveTable table(run);
  const auto period = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(session.options.stats_period_s));
  const bool shows = period > Clock::duration::zero();
  Clock::time_point next = Clock::now() + period;
  for (;;) {
    auto wait = milliseconds(50);
    if (shows) {
      const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
      wait = std::clamp(left, milliseconds(0), wait);
    }
    if (run.wait_for(wait)) {
      return;
    }
    if (interrupted() || apps::output_is_lost()) {
      run.request_stop();
    }
    if (shows && Clock::now() >= next) {
      table.show();
      next += period;
    }
  }
}

}  // namespace rio::testpmd

#include "apps/testpmd/interrupt.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>

#include "apps/common/std_streams.hpp"
#include "apps/testpmd/live_table.hpp"
#include "apps/testpmd/test_run.hpp"

namespace rio::testpmd {
namespace {

std::atomic<int> g_interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);  // the handler may use it

void on_signal(int number) {
  if (g_interrupts.fetch_add(1) > 0) {
    std::signal(number, SIG_DFL);
    (void)std::raise(number);
  }
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

bool interrupted() {
  return g_interrupts.load() != 0;
}

void forget_interrupt() {
  g_interrupts.store(0);
}

void watch(TestRun& session) {
  using Clock = std::chrono::steady_clock;
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

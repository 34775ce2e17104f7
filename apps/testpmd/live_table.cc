#include "apps/testpmd/live_table.hpp"

#include <unistd.h>

#include <cstdio>

#include "apps/testpmd/report.hpp"

namespace rio::testpmd {
namespace {

using Clock = std::chrono::steady_clock;

uint64_t failures(const PortFigures& f) {
  uint64_t sum = 0;
  for (const uint64_t n : f.status) {
    sum += n;
  }
  return sum;
}

void row(const char* label, const PortFigures& d, const PortFigures& all, double seconds) {
  const double busy =
      d.turns == 0 ? 0 : 100.0 * static_cast<double>(d.busy_turns) / static_cast<double>(d.turns);
  std::printf("%-12s %14s %14s %12s %12s %9s %5.0f%%\n", label,
              rate_text(static_cast<double>(d.rx_messages) / seconds).c_str(),
              rate_text(static_cast<double>(d.tx_messages) / seconds).c_str(),
              bandwidth_text(static_cast<double>(d.rx_bytes) / seconds).c_str(),
              grouped(all.retries).c_str(), grouped(failures(all)).c_str(), busy);
}

}  // namespace

LiveTable::LiveTable(const Run& run)
    : run_(run), tty_(isatty(STDOUT_FILENO) != 0), begin_(Clock::now()), last_(begin_) {
  for (const auto& stream : run.streams()) {
    before_.push_back(figures_of(*stream));
  }
}

void LiveTable::show() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  const double since_begin = std::chrono::duration<double>(now - begin_).count();
  PortFigures sum;
  PortFigures sum_all;
  std::vector<PortFigures> all;
  std::vector<PortFigures> delta;
  for (size_t i = 0; i < before_.size(); ++i) {
    all.push_back(figures_of(*run_.streams()[i]));
    delta.push_back(all[i].since(before_[i]));
    sum += delta[i];
    sum_all += all[i];
  }
  if (!tty_) {
    std::printf("%6.1f s  received %s, %s, %s retries, %s failed\n", since_begin,
                rate_text(static_cast<double>(sum.rx_messages) / seconds).c_str(),
                bandwidth_text(static_cast<double>(sum.rx_bytes) / seconds).c_str(),
                grouped(sum_all.retries).c_str(), grouped(failures(sum_all)).c_str());
  } else {
    if (lines_drawn_ != 0) {
      std::printf("\033[%zuA\033[J", lines_drawn_);
    }
    std::printf("%s, %s bytes, %.1f s\n", run_.mode().name, grouped(run_.size_bytes()).c_str(),
                since_begin);
    std::printf("%-12s %14s %14s %12s %12s %9s %6s\n", "", "received", "sent", "payload", "retries",
                "failed", "busy");
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

}  // namespace rio::testpmd

#include "apps/testpmd/report.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <numeric>

#include "apps/testpmd/text.hpp"
#include "pmd/dev/names.hpp"

namespace rio::testpmd {
namespace {

/// A percentile of the latency.
std::string at(const RunResult& result, double percent) {
  return time_text(ns_of(static_cast<double>(result.latency.percentile(percent))));
}

std::string verify_text(const VerifyTotals& v) {
  std::string text = "verified    " + grouped(v.bytes) + " bytes in " + grouped(v.messages) +
                     " messages, " + grouped(v.errors()) + " errors\n";
  if (v.errors() != 0) {
    text += "            " + grouped(v.lost) + " lost, " + grouped(v.duplicated) + " duplicated, " +
            grouped(v.corrupted) + " corrupted, " + grouped(v.unrefused) +
            " delivered though refused\n";
    if (!v.first_error.empty()) {
      text += "            first: " + v.first_error + "\n";
    }
  }
  if (v.refused + v.in_doubt + v.late != 0) {
    text += "            reported by the card and allowed: " + grouped(v.refused) + " refused, " +
            grouped(v.in_doubt) + " in doubt, " + grouped(v.late) + " out of order\n";
  }
  return text;
}

std::string status_text(const PortFigures& sum) {
  std::string text;
  for (size_t i = 1; i < kStatusCodes; ++i) {
    if (sum.status[i] != 0) {
      text += (text.empty() ? "status      " : ", ") + grouped(sum.status[i]) + " " +
              pmd::name(static_cast<pmd::Status>(i));
    }
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

double ns_of(double ticks) {
  return ticks * 1e9 / static_cast<double>(rte_get_tsc_hz());
}

double ratio(uint64_t n, double by) {
  return by > 0 ? static_cast<double>(n) / by : 0;
}

std::string rate_text(uint64_t n, double seconds) {
  const double rate = ratio(n, seconds);
  return rate >= 1e6   ? formatted("%.2f M/s", rate / 1e6)
         : rate >= 1e3 ? formatted("%.1f K/s", rate / 1e3)
                       : formatted("%.0f /s", rate);
}

std::string bandwidth_text(uint64_t bytes, double seconds) {
  const double rate = ratio(bytes, seconds);
  return rate >= 1e9   ? formatted("%.2f GB/s", rate / 1e9)
         : rate >= 1e6 ? formatted("%.1f MB/s", rate / 1e6)
                       : formatted("%.1f KB/s", rate / 1e3);
}

std::string time_text(double ns) {
  return ns < 1e4   ? formatted("%.0f ns", ns)
         : ns < 1e7 ? formatted("%.1f us", ns / 1e3)
                    : formatted("%.1f ms", ns / 1e6);
}

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

namespace {

/// Barriers that did not end as OK.
uint64_t failures(const PortFigures& f) {
  return std::accumulate(f.status.begin(), f.status.end(), uint64_t{0});
}

/// Lines of the members of a group.
std::string barriers_text(const RunResult& result) {
  std::string text;
  for (const PortFigures& f : result.streams) {
    text += formatted("%-20s%s barriers, %s of them failed\n", f.label.c_str(),
                      grouped(f.tx_messages).c_str(), grouped(failures(f)).c_str());
  }
  const auto ranks = static_cast<double>(std::max<size_t>(result.streams.size(), 1));
  text +=
      "rate        " + rate_text(result.sum.rx_messages, result.seconds * ranks) + " barriers\n";
  text += "violations  " + grouped(result.violations) + " left before the last arrival\n";
  return text;
}

/// Lines of ports that send messages.
std::string messages_text(const RunResult& result) {
  std::string text;
  for (const PortFigures& f : result.streams) {
    text += formatted(
        "%-12sreceived %s (%s, %s), sent %s\n", f.label.c_str(), grouped(f.rx_messages).c_str(),
        rate_text(f.rx_messages, result.seconds).c_str(),
        bandwidth_text(f.rx_bytes, result.seconds).c_str(), grouped(f.tx_messages).c_str());
  }
  text += "rate        " + rate_text(result.sum.rx_messages, result.seconds) +
          " messages, summed over the ports that received them\n";
  text += "bandwidth   " + bandwidth_text(result.sum.rx_bytes, result.seconds) + " payload\n";
  return text;
}

}  // namespace

std::string totals_text(const RunResult& result) {
  const bool barriers = result.mode == &kBarrierMode;
  std::string text =
      formatted("---- %s, %s, %.2f s on %u lcore%s%s ----\n", result.mode->name,
                result.described.c_str(), result.seconds, result.lcores,
                result.lcores == 1 ? "" : "s", result.is_model ? ", emulated card" : "");
  text += barriers ? barriers_text(result) : messages_text(result);
  if (result.latency.total() != 0) {
    text += "latency     p50 " + at(result, 50) + ", p90 " + at(result, 90) + ", p99 " +
            at(result, 99) + ", p99.9 " + at(result, 99.9) + ", max " + at(result, 100) +
            "\n            " + result.mode->latency_of + ", " + grouped(result.latency.total()) +
            " timed\n";
  }
  if (result.sum.bytes_placed + result.sum.bytes_copied != 0) {
    text += "alignment   " + grouped(result.sum.bytes_placed) + " bytes placed, " +
            grouped(result.sum.bytes_copied) + " bytes copied by the driver\n";
  }
  const auto messages = static_cast<double>(result.driver_messages);
  text += formatted("BAR         %.4f reads and %.4f writes a %s\n",
                    ratio(result.driver.bar_reads, messages),
                    ratio(result.driver.bar_writes, messages), barriers ? "barrier" : "message");
  if (result.sum.retries != 0) {
    text += "retries     " + grouped(result.sum.retries) + "\n";
  }
  text += status_text(result.sum);
  if (result.verified) {
    text += verify_text(result.verify);
  }
  if (!result.trouble.empty()) {
    text += "error: " + result.trouble + "\n";
  }
  return text;
}

std::string sweep_text(const std::vector<RunResult>& results) {
  std::string text = formatted("%9s %14s %14s %10s %10s %10s %8s\n", "bytes", "messages/s",
                               "payload", "p50", "p99", "max", "errors");
  for (const RunResult& r : results) {
    text += formatted("%9s %14s %14s %10s %10s %10s %8s\n", grouped(r.size_bytes).c_str(),
                      rate_text(r.sum.rx_messages, r.seconds).c_str(),
                      bandwidth_text(r.sum.rx_bytes, r.seconds).c_str(), at(r, 50).c_str(),
                      at(r, 99).c_str(), at(r, 100).c_str(),
                      r.verified ? grouped(r.verify.errors()).c_str() : "-");
  }
  return text;
}

}  // namespace rio::testpmd

#include "apps/testpmd/json_report.hpp"

#include <fcntl.h>
#include <rte_cycles.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "apps/testpmd/json.hpp"
#include "apps/testpmd/report.hpp"
#include "pmd/dev/names.hpp"

namespace rio::testpmd {
namespace {

double ratio(uint64_t n, double by) {
  return by > 0 ? static_cast<double>(n) / by : 0;
}

void write_figures(JsonWriter& json, const PortFigures& f, double seconds) {
  json.pair("tx_messages", f.tx_messages);
  json.pair("rx_messages", f.rx_messages);
  json.pair("rx_bytes", f.rx_bytes);
  json.pair("messages_per_s", ratio(f.rx_messages, seconds));
  json.pair("bytes_per_s", ratio(f.rx_bytes, seconds));
  json.pair("retries", f.retries);
  json.pair("bytes_placed", f.bytes_placed);
  json.pair("bytes_copied", f.bytes_copied);
  json.pair("turns", f.turns);
  json.pair("busy_turns", f.busy_turns);
  json.open("status", '{');
  for (size_t i = 1; i < kStatusCodes; ++i) {
    if (f.status[i] != 0) {
      json.pair(pmd::name(static_cast<pmd::Status>(i)), f.status[i]);
    }
  }
  json.close('}');
}

void write_latency(JsonWriter& json, const RunResult& result) {
  const LatencyFigures l = latency_of(result.latency);
  const double ns = 1e9 / static_cast<double>(rte_get_tsc_hz());
  json.open("latency_ns", '{');
  json.pair("of", result.latency_of == nullptr ? "" : result.latency_of);
  json.pair("timed", result.latency.total());
  json.pair("min", l.min_ns);
  json.pair("mean", l.mean_ns);
  json.pair("p50", l.p50_ns);
  json.pair("p90", l.p90_ns);
  json.pair("p99", l.p99_ns);
  json.pair("p99.9", l.p999_ns);
  json.pair("max", l.max_ns);
  json.open("histogram", '[');  // pairs: largest value of a bucket, how many
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    if (result.latency.count(i) != 0) {
      json.open('[');
      json.value(static_cast<double>(Histogram::last_value_of(i)) * ns);
      json.value(result.latency.count(i));
      json.close(']');
    }
  }
  json.close(']');
  json.close('}');
}

void write_verify(JsonWriter& json, const RunResult& result) {
  const VerifyTotals& v = result.verify;
  json.open("verify", '{');
  json.pair("on", result.verified);
  json.pair("bytes", v.bytes);
  json.pair("messages", v.messages);
  json.pair("sent", v.sent);
  json.pair("errors", result.verified ? v.errors() : 0);
  json.pair("lost", result.verified ? v.lost : 0);
  json.pair("duplicated", v.duplicated);
  json.pair("corrupted", v.corrupted);
  json.pair("delivered_though_refused", result.verified ? v.unrefused : 0);
  json.pair("refused", v.refused);
  json.pair("in_doubt", v.in_doubt);
  json.pair("out_of_order", v.late);
  json.pair("first_error", v.first_error.c_str());
  json.close('}');
}

void write_driver(JsonWriter& json, const RunResult& result) {
  const auto messages = static_cast<double>(result.driver_messages);
  json.open("driver", '{');
  json.pair("bar_reads", result.driver.bar_reads);
  json.pair("bar_writes", result.driver.bar_writes);
  json.pair("bar_reads_per_message", ratio(result.driver.bar_reads, messages));
  json.pair("bar_writes_per_message", ratio(result.driver.bar_writes, messages));
  json.pair("tx_messages", result.driver.tx_messages);
  json.pair("tx_failed", result.driver.tx_failed);
  json.pair("rx_messages", result.driver.rx_messages);
  json.pair("rx_failed", result.driver.rx_failed);
  json.pair("rejected", result.driver.rejected);
  json.pair("bad_completions", result.driver.bad_completions);
  json.close('}');
}

void write_run(JsonWriter& json, const RunResult& result) {
  json.open('{');
  json.pair("mode", result.mode.c_str());
  json.pair("size_bytes", result.size_bytes);
  json.pair("seconds", result.seconds);
  json.pair("lcores", result.lcores);
  json.pair("exit_code", static_cast<double>(result.exit_code));
  json.pair("trouble", result.trouble.c_str());
  write_figures(json, result.sum, result.seconds);
  write_latency(json, result);
  write_verify(json, result);
  write_driver(json, result);
  json.open("streams", '[');
  for (const PortFigures& f : result.streams) {
    json.open('{');
    json.pair("label", f.label.c_str());
    write_figures(json, f, result.seconds);
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

int cannot_write(const Options& options, int why, std::string* error) {
  *error = "--json: cannot write " + options.json_file + " (" + std::strerror(why) +
           "); name a file in a folder that is there and may be written";
  return -why;
}

}  // namespace

int check_json(const Options& options, std::string* error) {
  const char* const path = options.json_file.c_str();
  if (options.json_file.empty()) {
    return 0;
  }
  const bool was_there = access(path, F_OK) == 0;
  const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return cannot_write(options, errno, error);
  }
  (void)close(fd);
  if (!was_there) {
    (void)unlink(path);
  }
  return 0;
}

int write_json(const Options& options, const std::vector<RunResult>& results, std::string* error) {
  std::ofstream file(options.json_file);
  JsonWriter json(file);
  bool is_model = false;
  for (const RunResult& result : results) {
    is_model = is_model || result.is_model;
  }
  json.open('{');
  json.pair("program", "rio-testpmd");
  json.pair("card", is_model ? "emulated card" : "card");
  json.pair("emulated", is_model);
  json.pair("burst", options.burst);
  json.pair("offset_bytes", options.offset_bytes);
  json.pair("mailboxes", options.mailboxes);
  json.pair("seed", options.seed);
  json.pair("fault_seed", options.fault_seed);
  json.pair("fault_rate", options.fault_rate);
  json.open("runs", '[');
  for (const RunResult& result : results) {
    write_run(json, result);
  }
  json.close(']');
  json.close('}');
  file.close();
  if (!file) {
    return cannot_write(options, errno != 0 ? errno : EIO, error);
  }
  return 0;
}

}  // namespace rio::testpmd

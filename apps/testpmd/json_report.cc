#include "apps/testpmd/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "apps/testpmd/text.hpp"
#include "base/fd.hpp"
#include "pmd/dev/names.hpp"

namespace rio::testpmd {
namespace {

using Json = nlohmann::ordered_json;

Json figures(const PortFigures& f, double seconds) {
  Json status = Json::object();
  for (size_t i = 1; i < kStatusCodes; ++i) {
    if (f.status[i] != 0) {
      status[pmd::name(static_cast<pmd::Status>(i))] = f.status[i];
    }
  }
  Json json;
  each_figure(f, f, [&json](const char* name, uint64_t value, uint64_t) { json[name] = value; });
  json["messages_per_s"] = ratio(f.rx_messages, seconds);
  json["bytes_per_s"] = ratio(f.rx_bytes, seconds);
  json["status"] = status;
  return json;
}

Json latency(const RunResult& result) {
  const Histogram& h = result.latency;
  const auto at = [&h](double p) { return ns_of(static_cast<double>(h.percentile(p))); };
  Json histogram = Json::array();  // pairs: largest value of a bucket, how many
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    if (h.count(i) != 0) {
      histogram.push_back(
          Json::array({ns_of(static_cast<double>(Histogram::last_value_of(i))), h.count(i)}));
    }
  }
  return {{"of", result.mode->latency_of},
          {"timed", h.total()},
          {"min", ns_of(static_cast<double>(h.min()))},
          {"mean", ns_of(h.mean())},
          {"p50", at(50)},
          {"p90", at(90)},
          {"p99", at(99)},
          {"p99.9", at(99.9)},
          {"max", ns_of(static_cast<double>(h.max()))},
          {"histogram", histogram}};
}

Json verify(const RunResult& result) {
  const VerifyTotals& v = result.verify;
  return {{"on", result.verified},
          {"bytes", v.bytes},
          {"messages", v.messages},
          {"sent", v.sent},
          {"errors", result.verified ? v.errors() : 0},
          {"lost", result.verified ? v.lost : 0},
          {"duplicated", v.duplicated},
          {"corrupted", v.corrupted},
          {"delivered_though_refused", result.verified ? v.unrefused : 0},
          {"refused", v.refused},
          {"in_doubt", v.in_doubt},
          {"out_of_order", v.late},
          {"first_error", v.first_error}};
}

Json driver(const RunResult& result) {
  const auto messages = static_cast<double>(result.driver_messages);
  Json json;
  for (const auto& [name, count] : kDriverCounts) {
    json[name] = result.driver.*count;
  }
  json["bar_reads_per_message"] = ratio(result.driver.bar_reads, messages);
  json["bar_writes_per_message"] = ratio(result.driver.bar_writes, messages);
  return json;
}

Json run(const RunResult& result) {
  Json streams = Json::array();
  for (const PortFigures& f : result.streams) {
    Json stream = {{"label", f.label}};
    stream.update(figures(f, result.seconds));
    streams.push_back(stream);
  }
  Json json = {{"mode", result.mode->name},     {"size_bytes", result.size_bytes},
               {"seconds", result.seconds},     {"lcores", result.lcores},
               {"exit_code", result.exit_code}, {"trouble", result.trouble}};
  json.update(figures(result.sum, result.seconds));
  json["latency_ns"] = latency(result);
  json["verify"] = verify(result);
  json["driver"] = driver(result);
  if (result.mode == &kBarrierMode) {
    json["group"] = result.described;
    json["violations"] = result.violations;
  }
  json["streams"] = streams;
  return json;
}

int cannot_write(const Options& options, int why, std::string* error) {
  return fail(error,
              "--json: cannot write %s (%s); name a file in a folder that is there and may be "
              "written",
              options.json_file.c_str(), std::strerror(why));
}

}  // namespace

int check_json(const Options& options, std::string* error) {
  const char* const path = options.json_file.c_str();
  if (options.json_file.empty()) {
    return 0;
  }
  const bool was_there = access(path, F_OK) == 0;
  if (!base::Fd(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)).valid()) {
    return cannot_write(options, errno, error);
  }
  if (!was_there) {
    (void)unlink(path);
  }
  return 0;
}

int write_json(const Options& options, const std::vector<RunResult>& results, std::string* error) {
  bool is_model = false;
  Json runs = Json::array();
  for (const RunResult& result : results) {
    is_model = is_model || result.is_model;
    runs.push_back(run(result));
  }
  const Json json = {{"program", "rio-testpmd"},
                     {"card", is_model ? "emulated card" : "card"},
                     {"emulated", is_model},
                     {"burst", options.burst},
                     {"offset_bytes", options.offset_bytes},
                     {"mailboxes", options.mailboxes},
                     {"seed", options.seed},
                     {"fault_seed", options.fault_seed},
                     {"fault_rate", options.fault_rate},
                     {"schedule", barrier::to_string(options.schedule)},
                     {"skew_us", options.skew_us},
                     {"runs", runs}};
  std::ofstream file(options.json_file);
  file << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  if (!file) {
    return cannot_write(options, errno != 0 ? errno : EIO, error);
  }
  return 0;
}

}  // namespace rio::testpmd

#include "fpga/cardsim/report.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/formatted.hpp"
#include "fpga/cardsim/complain.hpp"

namespace rio::cardsim {
namespace {

using Json = nlohmann::ordered_json;

// In the order of model::PortCounts.
constexpr const char* kPortNames[] = {"tx_packets", "rx_packets",  "tx_retries",  "rx_retries",
                                      "rx_errors",  "tx_timeouts", "rx_timeouts", "rx_unmapped"};
// By bit of model::Fault.
constexpr const char* kFaultNames[] = {"retry",     "error",         "lost_response",
                                       "reorder",   "slow_receiver", "bad_address",
                                       "link_down", "stuck_queue"};

[[nodiscard]] std::string hex(uint64_t value) {
  return base::formatted("0x%" PRIx64, value);
}

void add_counts(const Attachment& attachment, Json* json) {
  const AttachmentCounts counts = attachment.counts();
  (*json)["peers"] = counts.peers;
  (*json)["interrupts"] = counts.irqs;
  (*json)["doorbells"] = counts.rings;
}

[[nodiscard]] Json card_report(SimCard& card) {
  const CardCounts counts = card.counts();
  Json json;
  json["name"] = card.spec().name;
  json["kind"] = kind_name(card.spec().way);
  for (size_t i = 0; i < 8; ++i) {
    json["port"][kPortNames[i]] = counts.port[i];
    json["faults"][kFaultNames[i]] = counts.faults[i];
  }
  json["refused_accesses"] = counts.refused;
  json["iommu_faults"] = counts.refused;
  if (counts.refused > 0) {
    json["iommu_first"] = hex(counts.first_refused_address);
  }
  add_counts(*card.attachments().front(), &json);
  for (size_t i = 1; i < card.attachments().size(); ++i) {
    add_counts(*card.attachments()[i], &json["vfs"][i - 1]);
  }
  return json;
}

}  // namespace

std::string report(const Ending& ending, const std::vector<std::unique_ptr<SimCard>>& cards,
                   wire::switched::Fabric* fabric) {
  Json json;
  json["ended"]["why"] = ending.why;
  if (ending.signal != 0) {
    json["ended"]["signal"] = ending.signal;
    json["ended"]["from_pid"] = ending.from_pid;
  }
  json["loop"]["looks"] = ending.loop.looks;
  json["loop"]["longest_pause_us"] = ending.loop.longest_pause.count();
  json["cards"] = Json::array();
  for (const auto& card : cards) {
    json["cards"].push_back(card_report(*card));
  }
  if (fabric != nullptr) {
    const wire::switched::FabricCounts counts = fabric->counts();
    json["fabric"] = {{"delivered", counts.delivered},
                      {"answered", counts.answered},
                      {"unrouted", counts.unrouted},
                      {"looped", counts.looped},
                      {"absent", counts.absent},
                      {"malformed", counts.malformed},
                      {"lost", counts.lost}};
  }
  // A name may hold any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int write_report(const std::string& path, const std::string& text) {
  std::FILE* const file = path == "-" ? stdout : std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    const int rc = -errno;
    complain("--json %s: %s; give a file that can be written", path.c_str(), std::strerror(-rc));
    return rc;
  }
  bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  ok = std::fflush(file) == 0 && ok;
  if (file != stdout) {
    ok = std::fclose(file) == 0 && ok;
  }
  if (!ok) {
    complain("--json %s: not all of the report could be written; is the disk full?", path.c_str());
    return -EIO;
  }
  return 0;
}

}  // namespace rio::cardsim

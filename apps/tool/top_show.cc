// TopData as JSON and tables.
#include <cinttypes>
#include <sstream>

#include "apps/tool/top_data.hpp"
#include "base/formatted.hpp"

namespace rio::tool {
namespace {

std::string link_text(const TopDevice& device) {
  if (device.gone) {
    return "GONE";
  }
  if (!device.link_up) {
    return "down";
  }
  return base::formatted("%" PRIu64 "x %.3g Gbaud", device.lanes,
                         static_cast<double>(device.lane_mbaud) / 1000);
}

std::string indented(const std::string& text, const char* by) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    out += by + line + '\n';
  }
  return out;
}

std::string port_table(const TopProgram& program) {
  std::vector<std::string> heads = {"port", "card", "link"};
  const TopDevice* const first = program.devices.empty() ? nullptr : &program.devices.front();
  for (size_t i = 0; first != nullptr && i < first->counters.size(); ++i) {
    heads.push_back(first->counters[i].name + "/s");
  }
  TextTable table(heads);
  for (const TopDevice& device : program.devices) {
    std::vector<std::string> row = {std::to_string(device.id),
                                    device.bus + (device.emulated ? " (emulated)" : ""),
                                    link_text(device)};
    for (const TopCounter& counter : device.counters) {
      row.push_back(short_number(counter.per_s));
    }
    table.add(std::move(row));
  }
  return table.text();
}

std::string queue_table(const TopProgram& program) {
  TextTable table({"port", "queue", "owner", "ring", "messages/s", "bytes/s", "failed/s", "failed",
                   "rejected", "fill"});
  for (const TopDevice& device : program.devices) {
    for (const TopQueue& queue : device.queues) {
      for (const TopRing& ring : queue.rings) {
        if (ring.messages == 0 && ring.failed == 0 && ring.rejected == 0 && ring.fill == 0) {
          continue;  // of no interest
        }
        table.add({std::to_string(device.id), std::to_string(queue.qp),
                   std::to_string(queue.owner_pid), ring.name, short_number(ring.messages_per_s),
                   short_number(ring.bytes_per_s), short_number(ring.failed_per_s),
                   std::to_string(ring.failed), std::to_string(ring.rejected),
                   ring.entries == 0
                       ? "-"
                       : std::to_string(ring.fill) + "/" + std::to_string(ring.entries)});
      }
    }
  }
  return table.empty() ? "" : table.text();
}

}  // namespace

// The JSON library finds these, and makes arrays of vectors by them.

static void to_json(Json& json, const TopRing& ring) {
  json = {{"ring", ring.name},
          {"messages", ring.messages},
          {"bytes", ring.bytes},
          {"failed", ring.failed},
          {"rejected", ring.rejected},
          {"entries", ring.entries},
          {"fill", ring.fill},
          {"messages_per_second", ring.messages_per_s},
          {"bytes_per_second", ring.bytes_per_s},
          {"failed_per_second", ring.failed_per_s}};
}

static void to_json(Json& json, const TopQueue& queue) {
  json = {{"queue_pair", queue.qp},
          {"owner_pid", queue.owner_pid},
          {"dest_id", queue.dest_id},
          {"rings", queue.rings}};
}

static void to_json(Json& json, const TopDevice& device) {
  Json counters = Json::object();
  Json rates = Json::object();
  for (const TopCounter& counter : device.counters) {
    counters[counter.name] = counter.value;
    rates[counter.name] = counter.per_s;
  }
  json = {{"port", device.id},      {"name", device.name},
          {"card", device.bus},     {"emulated", device.emulated},
          {"gone", device.gone},    {"link_up", device.link_up},
          {"lanes", device.lanes},  {"lane_mbaud", device.lane_mbaud},
          {"counters", counters},   {"per_second", rates},
          {"queues", device.queues}};
}

static void to_json(Json& json, const TopProgram& program) {
  json = {{"file_prefix", program.socket.prefix},
          {"pid", program.pid},
          {"version", program.version},
          {"ports", program.devices},
          {"problems", program.problems}};
}

Json top_json(const TopData& data) {
  return {{"time", utc_text()},
          {"programs", data.programs},
          {"message_ports", message_ports_json(data.message_ports)}};
}

std::string top_text(const TopData& data) {
  if (data.programs.empty() && data.message_ports.empty()) {
    return "No DPDK program with a RapidIO card answers. Start one, with telemetry (not "
           "--no-telemetry):\n"
           "  rio-testpmd -l 0 --no-pci --iova-mode=va --no-huge -m 256 --vdev raw_rio0,wire=w "
           "--vdev raw_rio1,wire=w -- --mode io\n";
  }
  std::string out;
  for (const TopProgram& program : data.programs) {
    out += "program " + program.socket.prefix + ", pid " + std::to_string(program.pid) + ", " +
           program.version + '\n';
    if (!program.devices.empty()) {
      out += indented(port_table(program), "  ");
    }
    out += indented(queue_table(program), "  ");
    for (const std::string& problem : program.problems) {
      out += "  does not answer as it should: " + problem + '\n';
    }
    out += '\n';
  }
  return out + message_ports_text(data.message_ports);
}

}  // namespace rio::tool

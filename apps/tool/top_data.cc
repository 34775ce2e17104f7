#include "apps/tool/top_data.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/number.hpp"
#include "pmd/dev/types.hpp"

namespace rio::tool {
namespace {

// Of all questions to a program, and of a round: a screen that hangs on a slow program is of no
// use.
constexpr std::chrono::milliseconds kProgramTime(1000);
constexpr std::chrono::milliseconds kRoundTime(2000);
constexpr size_t kDevicesMax = 64;  // as many raw devices as DPDK has
constexpr std::array kRings = {"tx", "shared", "dedicated", "doorbell", "dma", "event"};
constexpr std::array kCounters = {"TX_PACKETS", "RX_PACKETS",  "TX_RETRIES",  "RX_RETRIES",
                                  "RX_ERRORS",  "TX_TIMEOUTS", "RX_TIMEOUTS", "RX_UNMAPPED"};

bool number(const Json& object, const std::string& key, uint64_t most, uint64_t* out) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned() || it->get<uint64_t>() > most) {
    return false;
  }
  *out = it->get<uint64_t>();
  return true;
}

bool text(const Json& object, const char* key, std::string* out) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) {
    return false;
  }
  *out = base::printable(it->get_ref<const std::string&>());
  return true;
}

bool flag(const Json& object, const char* key, bool* out) {
  uint64_t value = 0;
  const bool good = number(object, key, 1, &value);
  *out = value != 0;
  return good;
}

// Parsers of foreign answers. @return whether it was one.

/// At most 64 numbers.
bool parse_list(const Json& answer, std::vector<uint64_t>* out) {
  if (!answer.is_array() || answer.size() > kDevicesMax) {
    return false;
  }
  std::vector<uint64_t> list;
  for (const Json& one : answer) {
    if (!one.is_number_unsigned() || one.get<uint64_t>() > UINT16_MAX) {
      return false;
    }
    list.push_back(one.get<uint64_t>());
  }
  *out = std::move(list);
  return true;
}

bool parse_info(const Json& answer, TopDevice* out, uint64_t* pairs) {
  return answer.is_object() && text(answer, "name", &out->name) && text(answer, "bus", &out->bus) &&
         flag(answer, "link_up", &out->link_up) && flag(answer, "gone", &out->gone) &&
         flag(answer, "emulated", &out->emulated) && number(answer, "lanes", 16, &out->lanes) &&
         number(answer, "lane_mbaud", UINT32_MAX, &out->lane_mbaud) &&
         number(answer, "queue_pairs", regs::kMaxQps, pairs);
}

bool parse_regs(const Json& answer, TopDevice* out) {
  std::vector<TopCounter> counters;
  for (const char* const name : kCounters) {
    uint64_t value = 0;
    if (!answer.is_object() || !number(answer, std::string("PORT/") + name, UINT32_MAX, &value)) {
      return false;
    }
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c == '_' ? c : static_cast<char>(c - 'A' + 'a'); });
    counters.push_back({lower, static_cast<uint32_t>(value), 0});
  }
  out->counters = std::move(counters);
  return true;
}

/// The counts and the fill of a ring, whose name is set.
bool parse_ring(const Json& answer, TopRing* out) {
  const std::string& ring = out->name;
  return number(answer, ring + "_messages", UINT64_MAX, &out->messages) &&
         number(answer, ring + "_bytes", UINT64_MAX, &out->bytes) &&
         number(answer, ring + "_failed", UINT64_MAX, &out->failed) &&
         number(answer, ring + "_rejected", UINT64_MAX, &out->rejected) &&
         number(answer, ring + "_entries", UINT32_MAX, &out->entries) &&
         number(answer, ring + "_fill", out->entries, &out->fill);
}

bool parse_queue(const Json& answer, TopQueue* out) {
  TopQueue queue;
  if (!answer.is_object() || !number(answer, "queue_pair", regs::kMaxQps - 1, &queue.qp) ||
      !number(answer, "owner_pid", UINT32_MAX, &queue.owner_pid) ||
      !number(answer, "dest_id", UINT32_MAX, &queue.dest_id)) {
    return false;
  }
  for (const char* const name : kRings) {
    TopRing ring;
    ring.name = name;
    if (!parse_ring(answer, &ring)) {
      return false;
    }
    queue.rings.push_back(std::move(ring));
  }
  // The last one, so that the places of the others stay when it is opened or closed.
  if (answer.contains("barrier_messages")) {
    TopRing ring;
    ring.name = "barrier";
    if (!parse_ring(answer, &ring)) {
      return false;
    }
    queue.rings.push_back(std::move(ring));
  }
  *out = std::move(queue);
  return true;
}

/// The questions to a program; faults of its answers are among its problems.
class Questions {
 public:
  Questions(TelemetryClient& client, TopProgram& program) : client_(client), program_(program) {}

  /// @return false: no answer to go on with.
  [[nodiscard]] bool ask(const std::string& command, Json* answer) {
    const int rc = client_.ask(command, answer);
    if (rc == 0) {
      return true;
    }
    broken_ = true;
    ended_ = ended_ || rc == -EPIPE;
    program_.problems.push_back(command + ": " +
                                (rc == -EPROTO ? "no answer to it" : std::strerror(-rc)));
    return false;
  }
  /// Note an answer that is not `good`. @return `good`.
  bool check(const std::string& command, bool good) {
    if (!good) {
      program_.problems.push_back(command + ": makes no sense");
    }
    return good;
  }
  /// The answers are out of step from now on, so the connection is of no more use.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  TelemetryClient& client_;
  TopProgram& program_;
  bool broken_ = false;
  bool ended_ = false;
};

void ask_queues(Questions& questions, uint64_t pairs, TopDevice* device) {
  for (uint64_t qp = 0; qp < pairs; ++qp) {
    const std::string command =
        "/raw_rio/queue," + std::to_string(device->id) + "," + std::to_string(qp);
    Json answer;
    TopQueue queue;
    if (!questions.ask(command, &answer) ||
        !questions.check(command, parse_queue(answer, &queue))) {
      return;
    }
    device->queues.push_back(std::move(queue));
  }
}

void ask_device(Questions& questions, uint64_t id, TopProgram* program) {
  const std::string info = "/raw_rio/info," + std::to_string(id);
  const std::string regs = "/raw_rio/regs," + std::to_string(id);
  Json answer;
  TopDevice device;
  device.id = id;
  uint64_t pairs = 0;
  if (!questions.ask(info, &answer) || answer.is_null() ||  // null: unplugged meanwhile
      !questions.check(info, parse_info(answer, &device, &pairs)) ||
      !questions.ask(regs, &answer)) {
    return;
  }
  questions.check(regs, parse_regs(answer, &device));
  ask_queues(questions, pairs, &device);
  program->devices.push_back(std::move(device));
}

template <class Unsigned>
double rate(Unsigned before, Unsigned now, double seconds) {
  return static_cast<double>(static_cast<Unsigned>(now - before)) / seconds;
}

void set_ring_rates(const TopRing& before, TopRing* now, double seconds) {
  if (now->messages < before.messages || now->bytes < before.bytes || now->failed < before.failed) {
    return;
  }
  now->messages_per_s = rate(before.messages, now->messages, seconds);
  now->bytes_per_s = rate(before.bytes, now->bytes, seconds);
  now->failed_per_s = rate(before.failed, now->failed, seconds);
}

void set_device_rates(const TopDevice& before, TopDevice* now, double seconds) {
  for (size_t i = 0; i < std::min(before.counters.size(), now->counters.size()); ++i) {
    now->counters[i].per_s = rate(before.counters[i].value, now->counters[i].value, seconds);
  }
  for (size_t i = 0; i < std::min(before.queues.size(), now->queues.size()); ++i) {
    const auto& old = before.queues[i].rings;
    auto& rings = now->queues[i].rings;
    for (size_t k = 0; k < std::min(old.size(), rings.size()); ++k) {
      set_ring_rates(old[k], &rings[k], seconds);
    }
  }
}

/// Fill in the rates of `now`. Counts that shrank (the program was started anew) have none.
void set_rates(const TopData& before, TopData* now) {
  const std::chrono::duration<double> took = now->at - before.at;
  for (TopProgram& program : now->programs) {
    for (const TopProgram& old : before.programs) {
      if (old.socket.path != program.socket.path || old.pid != program.pid || took.count() <= 0) {
        continue;
      }
      for (TopDevice& device : program.devices) {
        for (const TopDevice& old_device : old.devices) {
          if (old_device.id == device.id && old_device.name == device.name) {
            set_device_rates(old_device, &device, took.count());
          }
        }
      }
    }
  }
}

}  // namespace

bool TopSource::ask_program(Time deadline, TopProgram* out) {
  const TelemetrySocket& socket = out->socket;
  TelemetryClient& client = clients_[socket.path];
  client.set_deadline(deadline);
  if (client.pid() == 0) {
    const int rc = client.connect(socket.path);
    if (rc == -ECONNREFUSED || rc == -ENOENT) {
      return false;  // left over by a program that died
    }
    if (rc != 0) {
      out->problems.push_back(std::string("no greeting: ") + std::strerror(-rc));
      return true;
    }
  }
  out->pid = client.pid();
  out->version = client.version();
  Questions questions(client, *out);
  Json answer;
  std::vector<uint64_t> ids;
  if (questions.ask("/raw_rio/list", &answer)) {
    if (answer.is_null()) {
      return false;  // a program without our driver
    }
    questions.check("/raw_rio/list", parse_list(answer, &ids));
  }
  for (const uint64_t id : ids) {
    if (!questions.broken()) {
      ask_device(questions, id, out);
    }
  }
  if (questions.broken()) {
    clients_.erase(socket.path);
  }
  return !questions.ended() && (!out->devices.empty() || !out->problems.empty());
}

void TopSource::ask(TopData* out) {
  TopData data;
  data.at = std::chrono::steady_clock::now();
  std::vector<TelemetrySocket> sockets = find_sockets(runtime_dir_);
  std::erase_if(clients_, [&](const auto& client) {
    return std::none_of(sockets.begin(), sockets.end(),
                        [&](const TelemetrySocket& socket) { return socket.path == client.first; });
  });
  // Sockets that did not answer in time come last, so that they delay no others.
  std::stable_partition(sockets.begin(), sockets.end(), [this](const TelemetrySocket& socket) {
    return !slow_.contains(socket.path);
  });
  const Time end = data.at + kRoundTime;
  for (const TelemetrySocket& socket : sockets) {
    TopProgram program;
    program.socket = socket;
    const Time begin = std::chrono::steady_clock::now();
    if (begin >= end) {
      program.problems = {"not asked: others took the time of this round"};
      data.programs.push_back(std::move(program));
      continue;
    }
    if (ask_program(std::min(end, begin + kProgramTime), &program)) {
      data.programs.push_back(std::move(program));
    }
    if (std::chrono::steady_clock::now() - begin >= kProgramTime / 4) {
      slow_.insert(socket.path);
    } else {
      slow_.erase(socket.path);
    }
  }
  std::sort(data.programs.begin(), data.programs.end(),
            [](const TopProgram& a, const TopProgram& b) { return a.socket.path < b.socket.path; });
  set_rates(last_, &data);
  data.message_ports = read_message_ports(last_.message_ports);
  last_ = data;
  *out = std::move(data);
}

}  // namespace rio::tool

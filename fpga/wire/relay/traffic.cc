#include "fpga/wire/relay/traffic.hpp"

#include <algorithm>

#include "fpga/wire/frame_check.hpp"

namespace rio::wire::relay {
namespace {

using model::InFrame;

/// Packets taken at a time from a process and lane, so that a flood delays no other process.
constexpr uint32_t kPacketsPerTurn = 32;
/// As many as its rings can hold: everything that a gone process has left.
constexpr uint32_t kPacketsLeft = 4096;

}  // namespace

Traffic::Process* Traffic::find(uint32_t number) {
  const auto it = all_.find(number);
  return it == all_.end() ? nullptr : &it->second;
}

void Traffic::add(uint32_t process, uint32_t first_id, uint32_t ids, const Ends& ends) {
  Process& made = all_[process];
  made.number = process;
  made.first_id = first_id;
  made.ids = ids;
  made.ends = ends;
  last_ = std::max(last_, process);
}

void Traffic::remove(uint32_t number, bool honest) {
  Process* const gone = find(number);
  if (gone == nullptr) {
    return;
  }
  for (uint32_t lane = 0; honest && !gone->foul && lane < kLanes; ++lane) {
    static_cast<void>(take(*gone, lane, kPacketsLeft));
  }
  all_.erase(number);
  std::erase_if(leaving_, [&](const Departure& key) { return key.second == number; });
  for (const auto& [other, process] : all_) {
    leaving_.emplace_back(number, other);
  }
  see_off(number);
}

// Reports the end of a process to the processes for which nothing from it is queued any more.
void Traffic::see_off(uint32_t gone) {
  std::erase_if(leaving_, [&](const Departure& key) {
    if (key.first != gone) {
      return false;
    }
    Process& to = all_.at(key.second);
    for (auto& flows : to.from) {
      const auto it = flows.find(gone);
      if (it != flows.end() && !it->second.queue.empty()) {
        return false;
      }
    }
    for (auto& flows : to.from) {
      flows.erase(gone);
    }
    departures_.push_back(key);
    return true;
  });
}

bool Traffic::sweep() {
  bool moved = false;
  for (auto& [number, process] : all_) {
    for (const uint32_t lane : {kResponses, 0u}) {
      moved = take(process, lane, kPacketsPerTurn) || moved;
    }
  }
  for (auto& [number, process] : all_) {
    for (const uint32_t lane : {kResponses, 0u}) {
      moved = pass_on(process, lane) || moved;
      moved = look_who_took(process, lane) || moved;
      moved = give_credit(process, lane) || moved;
    }
  }
  return moved;
}

bool Traffic::take(Process& source, uint32_t lane, uint32_t most) {
  model::FrameReader& up = *source.ends.up[lane];
  const InFrame* packet = source.foul ? nullptr : up.peek();
  uint32_t left = most;
  for (; packet != nullptr && left > 0; --left) {
    if (const char* const what = on_packet(source, lane, *packet); what != nullptr) {
      source.foul = true;
      fouls_.emplace_back(source.number, what);
      return true;
    }
    up.pop(packet);
    packet = up.peek();
  }
  if (up.foul() && !source.foul) {
    source.foul = true;
    fouls_.emplace_back(source.number, "writes a packet of an impossible size into its ring");
  }
  if (left == most) {
    return false;
  }
  up.release();
  return true;
}

const char* Traffic::on_packet(Process& source, uint32_t lane, const InFrame& in) {
  const bool control = id_of(in) == kControlBit;
  if (!control && id_of(in) != kDataBit) {
    return "sends a packet of an unknown kind";
  }
  const auto head = packet_as<Announce>(in);  // Data begins alike
  if (head.source_process != source.number ||
      (control && head.source_port - source.first_id >= source.ids)) {
    return control ? "announces a transfer in another's name" : "sends data in another's name";
  }
  if (head.dest_process == 0 || head.dest_process > last_) {
    return control ? "announces a transfer to a process that never was"
                   : "sends data to a process that never was";
  }
  Process* const dest = find(head.dest_process);
  if (dest == nullptr) {
    return nullptr;  // gone, which the source will be told
  }
  return control ? on_announce(source, *dest, lane, head) : on_data(source, *dest, lane, in);
}

const char* Traffic::on_announce(Process& source, Process& dest, uint32_t lane,
                                 const Announce& head) {
  if (head.dest_port - dest.first_id >= dest.ids) {
    return "announces a transfer to a port of another process";
  }
  Flow& flow = dest.from[lane][source.number];
  if (const char* const what = flow.in.announce(head); what != nullptr) {
    return what;
  }
  if (head.length > kWindowBytes - flow.used) {
    return "sends more than its window";
  }
  flow.used += head.length;
  return nullptr;
}

const char* Traffic::on_data(Process& source, Process& dest, uint32_t lane, const InFrame& in) {
  const auto it = dest.from[lane].find(source.number);
  if (it == dest.from[lane].end()) {
    return "sends data that it has not announced";
  }
  bool whole = false;
  const std::span payload(in.payload(), in.bytes - sizeof(Data));
  if (const char* const what = it->second.in.data(packet_as<Data>(in), payload, &whole);
      what != nullptr) {
    return what;
  }
  return whole ? enqueue(source, dest, lane, it->second) : nullptr;
}

const char* Traffic::enqueue(Process& source, Process& dest, uint32_t lane, Flow& flow) {
  const auto bytes = flow.in.frame();
  const Announce& head = flow.in.head();
  const model::Frame frame = head_of(bytes.data());
  if (frame.bytes != head.length || frame.source != head.source_port ||
      frame.dest != head.dest_port || !may_travel(frame, lane == kResponses)) {
    return "sends a frame that no card sends there";
  }
  flow.queue.emplace_back(head, std::vector<uint8_t>(bytes.begin(), bytes.end()));
  if (!std::exchange(flow.in_line, true)) {
    dest.line[lane].push_back(source.number);
  }
  ++source.counts.frames_up;
  source.counts.bytes_up += bytes.size();
  dest.counts.queued_bytes += bytes.size();
  dest.counts.queued_most = std::max(dest.counts.queued_most, dest.counts.queued_bytes);
  return nullptr;
}

// Sources take turns, one frame each.
bool Traffic::pass_on(Process& dest, uint32_t lane) {
  model::FrameWriter& down = *dest.ends.down[lane];
  bool moved = false;
  while (!dest.foul && !dest.line[lane].empty()) {
    const uint32_t source = dest.line[lane].front();
    Flow& flow = dest.from[lane].at(source);
    auto& [head, frame] = flow.queue.front();
    const auto bytes = static_cast<uint32_t>(frame.size());
    if (!put_transfer(down, head, frame)) {
      break;
    }
    moved = true;
    dest.under_way[lane].push_back({down.tail(), source, bytes});
    dest.counts.queued_bytes -= bytes;
    ++dest.counts.frames_down;
    flow.queue.pop_front();
    dest.line[lane].pop_front();
    flow.in_line = !flow.queue.empty();
    if (flow.in_line) {
      dest.line[lane].push_back(source);
    } else if (find(source) == nullptr) {
      see_off(source);
    }
  }
  if (down.foul() && !dest.foul) {
    dest.foul = true;
    fouls_.emplace_back(dest.number, "gives back more room in its ring than it was given");
  }
  return moved;
}

bool Traffic::look_who_took(Process& dest, uint32_t lane) {
  auto& under_way = dest.under_way[lane];
  bool moved = false;
  while (!under_way.empty() && dest.ends.down[lane]->passed(under_way.front().position)) {
    const auto it = dest.from[lane].find(under_way.front().source);
    if (it != dest.from[lane].end()) {
      if (it->second.due == 0) {
        dest.dues[lane].push_back(it->first);
      }
      it->second.due += under_way.front().bytes;
    }
    under_way.pop_front();
    moved = true;
  }
  return moved;
}

bool Traffic::give_credit(Process& dest, uint32_t lane) {
  return std::erase_if(dest.dues[lane], [&](uint32_t number) {
           const auto it = dest.from[lane].find(number);
           Process* const source = it == dest.from[lane].end() ? nullptr : find(number);
           if (source == nullptr || source->foul) {
             return true;
           }
           Flow& flow = it->second;
           // In the lane from which a process always takes.
           if (!put_credit(*source->ends.down[kResponses], dest.number, lane, flow.due)) {
             return false;
           }
           flow.used -= std::exchange(flow.due, 0);
           return true;
         }) != 0;
}

}  // namespace rio::wire::relay

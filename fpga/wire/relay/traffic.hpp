/// @file
/// The host's work on packets: checks them, makes frames of them, queues the frames and forwards
/// them. No I/O and no clock: its caller wakes, sleeps, and tells processes about each other.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fpga/model/frame_ring.hpp"
#include "fpga/wire/relay/packet.hpp"

namespace rio::wire::relay {

/// The host's ends of a process's rings, by lane. They outlive its membership.
struct Ends {
  model::FrameReader* up[kLanes];
  model::FrameWriter* down[kLanes];
};

/// Traffic that was forwarded for a process.
struct Counts {
  uint64_t frames_up = 0;
  uint64_t bytes_up = 0;
  uint64_t frames_down = 0;
  uint64_t queued_bytes = 0;  ///< waiting for it now
  uint64_t queued_most = 0;
};

/// The traffic of all processes. One thread.
class Traffic {
 public:
  /// Add a process. @param process a number that no process has had. @param first_id, ids its
  /// destIDs.
  void add(uint32_t process, uint32_t first_id, uint32_t ids, const Ends& ends);
  /// Remove a process. Frames that it has sent, and that are in its rings, are still forwarded,
  /// unless it was cut off for breaking the rules; frames for it are dropped. Its rings are no
  /// longer used.
  void remove(uint32_t process, bool honest);
  [[nodiscard]] bool has(uint32_t process) const { return all_.contains(process); }

  /// Forward what there is, a bounded share of each process. @return whether anything was moved.
  bool sweep();

  /// A process that broke a rule, and the rule: "announces ...".
  using Foul = std::pair<uint32_t, std::string>;
  /// Take them: remove() each. @return empty: none.
  [[nodiscard]] std::vector<Foul> take_fouls() { return std::exchange(fouls_, {}); }
  /// A process that is gone, and one that it has nothing on its way to any more.
  using Departure = std::pair<uint32_t, uint32_t>;
  /// Take them: tell the second process of each about the first. @return empty: none.
  [[nodiscard]] std::vector<Departure> take_departures() { return std::exchange(departures_, {}); }

  [[nodiscard]] const Counts& counts(uint32_t process) const { return all_.at(process).counts; }

 private:
  struct Flow {
    Assembler in;
    std::deque<std::pair<Announce, std::vector<uint8_t>>> queue;
    uint32_t used = 0;  // bytes of the window
    uint32_t due = 0;   // to be reported to the source
    bool in_line = false;
  };
  struct Passed {
    uint32_t position;
    uint32_t source;
    uint32_t bytes;
  };
  struct Process {
    uint32_t number = 0;
    uint32_t first_id = 0;
    uint32_t ids = 0;
    Ends ends{};
    Counts counts;
    bool foul = false;
    std::deque<uint32_t> line[kLanes];      // sources with frames for this process, in turn
    std::deque<Passed> under_way[kLanes];   // in its rings
    std::vector<uint32_t> dues[kLanes];     // sources that are owed credit
    std::map<uint32_t, Flow> from[kLanes];  // by source
  };

  [[nodiscard]] Process* find(uint32_t number);
  bool take(Process& source, uint32_t lane, uint32_t most);
  [[nodiscard]] const char* on_packet(Process& source, uint32_t lane, const model::InFrame& in);
  [[nodiscard]] const char* on_announce(Process& source, Process& dest, uint32_t lane,
                                        const Announce& head);
  [[nodiscard]] const char* on_data(Process& source, Process& dest, uint32_t lane,
                                    const model::InFrame& in);
  [[nodiscard]] const char* enqueue(Process& source, Process& dest, uint32_t lane, Flow& flow);
  bool pass_on(Process& dest, uint32_t lane);
  bool look_who_took(Process& dest, uint32_t lane);
  bool give_credit(Process& dest, uint32_t lane);
  void see_off(uint32_t gone);

  std::map<uint32_t, Process> all_;  // by number
  uint32_t last_ = 0;                // the highest number ever given
  std::vector<Foul> fouls_;
  std::vector<Departure> leaving_;  // the second has to be told in the end
  std::vector<Departure> departures_;
};

}  // namespace rio::wire::relay

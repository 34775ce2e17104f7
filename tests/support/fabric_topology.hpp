/// @file
/// Topologies for several tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fpga/wire/switched/fabric.hpp"

namespace rio::test {

/// Parses a topology, which must be valid.
inline wire::switched::Topology topology(const std::string& json) {
  wire::switched::Topology made;
  std::string error;
  EXPECT_EQ(wire::switched::parse_topology(json, &made, &error), 0) << error;
  return made;
}

inline std::shared_ptr<wire::switched::Fabric> fabric(const std::string& json) {
  std::shared_ptr<wire::switched::Fabric> made;
  EXPECT_EQ(wire::switched::Fabric::create(topology(json), nullptr, &made), 0);
  return made;
}

/// A ring of `switches` switches s0, s1, ..., with `endpoints` endpoints e0.0, e0.1, ... at each of
/// them, and "host" at the first. @param more further members of the topology, such as
/// `,"loss":...`.
inline std::string ring_topology(int switches, int endpoints, const std::string& more = "") {
  const auto text = [](int number) { return std::to_string(number); };
  std::string devices;
  std::string ends = R"({"name": "host"})";
  std::string links = R"(["host", "s0:0"])";
  for (int s = 0; s < switches; ++s) {
    devices += (s == 0 ? "" : ",") + (R"({"name": "s)" + text(s)) + R"(", "ports": 16})";
    links += R"(,["s)" + text(s) + R"(:15", "s)" + text((s + 1) % switches) + R"(:14"])";
    for (int e = 0; e < endpoints; ++e) {
      const std::string name = "e" + text(s) + "." + text(e);
      ends += R"(,{"name": ")" + name + R"("})";
      links += R"(,[")" + name + R"(", "s)" + text(s) + ":" + text(e + 1) + R"("])";
    }
  }
  return R"({"switches": [)" + devices + R"(], "endpoints": [)" + ends + R"(], "links": [)" +
         links + "]" + more + "}";
}

}  // namespace rio::test

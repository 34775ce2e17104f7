// Topology files are foreign bytes: each mistake is named.
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "fpga/wire/switched/topology.hpp"

namespace rio::wire::switched {
namespace {

int parse(const std::string& json, Topology* out, std::string* error) {
  return parse_topology(json, out, error);
}

TEST(Topology, IsParsed) {
  Topology made;
  std::string error;
  ASSERT_EQ(parse(R"({"switches": [{"name": "s", "ports": 4, "routes": {"7": 3}, "tag": 9}],
                     "endpoints": [{"name": "a"}, {"name": "b", "dest_id": 7, "locked_by": 5,
                                   "silent": true, "present": false}],
                     "links": [["a", "s:0"], ["s:3", "b"]],
                     "loss": {"seed": 3, "rate": 0.25}})",
                  &made, &error),
            0)
      << error;
  ASSERT_EQ(made.devices.size(), 3u);
  EXPECT_TRUE(made.devices[0].is_switch);
  EXPECT_EQ(made.devices[0].ports, 4u);
  EXPECT_EQ(made.devices[0].routes.at(7), 3u);
  EXPECT_EQ(made.devices[0].tag, 9u);
  EXPECT_EQ(made.devices[1].dest_id, 0xFFu);
  EXPECT_EQ(made.devices[2].dest_id, 7u);
  EXPECT_EQ(made.devices[2].locked_by, 5u);
  EXPECT_TRUE(made.devices[2].silent);
  EXPECT_FALSE(made.devices[2].present);
  ASSERT_EQ(made.links.size(), 2u);
  EXPECT_EQ(made.links[1].ends[0].device, 0u);
  EXPECT_EQ(made.links[1].ends[0].port, 3u);
  EXPECT_EQ(made.links[1].ends[1].device, 2u);
  EXPECT_EQ(made.loss_seed, 3u);
  EXPECT_EQ(made.loss_rate, 0.25);
}

TEST(Topology, MistakesAreNamed) {
  const struct {
    const char* json;
    const char* names;
  } cases[] = {
      {"", "not JSON"},
      {"[", "not JSON"},
      {"[]", "not an object"},
      {R"({"switch": []})", "\"switch\""},
      {R"({"switches": {}})", "not an array"},
      {R"({"switches": [{"ports": 4}]})", "no name"},
      {R"({"switches": [{"name": "a b"}]})", "bad one"},
      {R"({"switches": [{"name": "s", "ports": 256}]})", "1 to 255"},
      {R"({"switches": [{"name": "s", "ports": -1}]})", "1 to 255"},
      {R"({"switches": [{"name": "s", "ports": "4"}]})", "1 to 255"},
      {R"({"switches": [{"name": "s", "route_entries": 255}]})", "256 to 65536"},
      {R"({"switches": [{"name": "s", "silent": 1}]})", "silent"},
      {R"({"switches": [{"name": "s", "routes": {"256": 0}}]})", "route \"256\""},
      {R"({"switches": [{"name": "s", "routes": {"1": 8}}]})", "port below 8"},
      {R"({"switches": [{"name": "s", "routes": {"1x": 0}}]})", "route \"1x\""},
      {R"({"endpoints": [{"name": "e", "dest_id": 65535}]})", "0 to 65534"},
      {R"({"endpoints": [{"name": "e"}, {"name": "e"}]})", "two devices"},
      {R"({"endpoints": [{"name": "e"}], "links": [["e", "f"]]})", "\"f\": no such device"},
      {R"({"endpoints": [{"name": "e"}], "links": [["e:0", "e"]]})", "leave out the colon"},
      {R"({"endpoints": [{"name": "e"}], "links": [["e", "e"]]})", "has a link already"},
      {R"({"endpoints": [{"name": "e"}], "links": [["e"]]})", "not a pair"},
      {R"({"switches": [{"name": "s"}], "endpoints": [{"name": "e"}], "links": [["e", "s:8"]]})",
       "0 to 7"},
      {R"({"switches": [{"name": "s"}], "endpoints": [{"name": "e"}], "links": [["e", "s"]]})",
       "s:0"},
      {R"({"loss": {"rate": 1.5}})", "0.0 to 1.0"},
      {R"({"loss": {}})", "0.0 to 1.0"},
  };
  for (const auto& one : cases) {
    Topology made;
    made.loss_seed = 77;
    std::string error;
    EXPECT_EQ(parse(one.json, &made, &error), -EINVAL) << one.json;
    EXPECT_NE(error.find(one.names), std::string::npos) << one.json << ": " << error;
    EXPECT_EQ(made.loss_seed, 77u) << "an output is set on success only";
  }
}

TEST(Topology, FilesAreNamed) {
  Topology made;
  std::string error;
  EXPECT_EQ(load_topology("", &made, &error), -EINVAL);
  EXPECT_EQ(error, "the path of the topology file is empty; name a topology file");
  EXPECT_EQ(load_topology("/nonexistent/topology.json", &made, &error), -ENOENT);
  EXPECT_NE(error.find("/nonexistent/topology.json"), std::string::npos);
  EXPECT_EQ(load_topology("/tmp", &made, &error), -EISDIR);
  EXPECT_NE(error.find("/tmp is a folder"), std::string::npos) << error;
}

}  // namespace
}  // namespace rio::wire::switched

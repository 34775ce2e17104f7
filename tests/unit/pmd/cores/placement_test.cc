#include "pmd/cores/placement.hpp"

#include <gtest/gtest.h>
#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "pmd/cores/cpu_list.hpp"

namespace rio::pmd::cores {
namespace {

using Cpus = std::vector<unsigned>;

// Two packages with a node each, four cores of two hyperthreads: CPUs 0 and 1 are the first core.
constexpr const char* kTwoNodes = "pack:2 [numa] core:4 pu:2";

/// Creates a placement on the machine that a variable of hwloc's describes.
int create_on(const char* variable, const std::string& text, std::unique_ptr<Placement>* out) {
  setenv(variable, text.c_str(), 1);
  const int rc = Placement::create(out);
  unsetenv(variable);
  return rc;
}

/// A file that exists while this lives.
class TempFile {
 public:
  TempFile() {
    char name[] = "/tmp/riopmd-topology-XXXXXX";
    const int fd = mkstemp(name);
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
  }
  ~TempFile() { unlink(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::unique_ptr<Placement> machine(const std::string& synthetic) {
  std::unique_ptr<Placement> placement;
  EXPECT_EQ(create_on("HWLOC_SYNTHETIC", synthetic, &placement), 0);
  return placement;
}

/// A machine of which only some CPUs may be used.
std::unique_ptr<Placement> machine(const std::string& synthetic, const std::string& allowed) {
  const TempFile file;
  hwloc_topology_t topology = nullptr;
  EXPECT_EQ(hwloc_topology_init(&topology), 0);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, synthetic.c_str()), 0);
  EXPECT_EQ(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED), 0);
  EXPECT_EQ(hwloc_topology_load(topology), 0);
  const hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
  EXPECT_EQ(hwloc_bitmap_list_sscanf(cpus, allowed.c_str()), 0);
  EXPECT_EQ(hwloc_topology_allow(topology, cpus, nullptr, HWLOC_ALLOW_FLAG_CUSTOM), 0);
  hwloc_bitmap_free(cpus);
  EXPECT_EQ(hwloc_topology_export_xml(topology, file.path().c_str(), 0), 0);
  hwloc_topology_destroy(topology);
  std::unique_ptr<Placement> placement;
  EXPECT_EQ(create_on("HWLOC_XMLFILE", file.path(), &placement), 0);
  return placement;
}

Cpus choose(const Placement& placement, const Near& near, unsigned count, const Cpus& taken = {}) {
  Cpus cpus;
  EXPECT_EQ(placement.choose(near, count, taken, &cpus), 0);
  return cpus;
}

std::string parse_fails(const Placement& placement, const std::string& text) {
  Cpus cpus{77};
  testing::internal::CaptureStderr();
  EXPECT_EQ(placement.parse_list(text, &cpus), -EINVAL) << text;
  EXPECT_EQ(cpus, Cpus{77});
  return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Placement, ChoosesNearTheNode) {
  const auto placement = machine(kTwoNodes);
  EXPECT_EQ(choose(*placement, {"", 1}, 3), (Cpus{8, 10, 12}));
  EXPECT_EQ(choose(*placement, {"", 0}, 2), (Cpus{0, 2}));
  EXPECT_EQ(choose(*placement, {"", -1}, 2), (Cpus{0, 2}));
  EXPECT_EQ(choose(*placement, {"", 9}, 2), (Cpus{0, 2}));  // no such node
  EXPECT_EQ(placement->numa_node_of(9), 1);
  EXPECT_EQ(placement->numa_node_of(99), -1);
}

TEST(Placement, PrefersWholeCoresToHyperthreads) {
  const auto placement = machine(kTwoNodes);
  EXPECT_EQ(choose(*placement, {"", 1}, 10), (Cpus{8, 10, 12, 14, 0, 2, 4, 6, 9, 11}));
  EXPECT_EQ(placement->sharing_warning(choose(*placement, {"", 1}, 8)), "");
}

TEST(Placement, TakenCoresComeLast) {
  const auto placement = machine("core:3 pu:2");
  EXPECT_EQ(choose(*placement, {}, 6, {0}), (Cpus{2, 4, 1, 3, 5, 0}));
  EXPECT_EQ(choose(*placement, {}, 1, {99}), (Cpus{0}));
}

TEST(Placement, MorePollersThanCpusShare) {
  const auto placement = machine("core:2 pu:1");
  const Cpus cpus = choose(*placement, {}, 3);
  EXPECT_EQ(cpus, (Cpus{0, 1, 0}));
  EXPECT_EQ(placement->sharing_warning(cpus), "pollers 0 and 2 share CPU 0: each slows the other");
  testing::internal::CaptureStderr();
  Cpus unused;
  EXPECT_EQ(placement->choose({}, 0, {}, &unused), -EINVAL);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "0 pollers"));
}

TEST(Placement, WarnsAboutHyperthreads) {
  const auto placement = machine(kTwoNodes);
  EXPECT_EQ(placement->sharing_warning(Cpus{0, 2, 3}),
            "pollers 1 and 2 share a core: CPUs 2 and 3 are its hyperthreads");
  EXPECT_EQ(placement->sharing_warning(Cpus{0, 2, 4}), "");
}

TEST(Placement, KeepsToTheCpuset) {
  const auto placement = machine(kTwoNodes, "3,8-9");
  EXPECT_EQ(placement->cpus(), (Cpus{3, 8, 9}));
  EXPECT_EQ(choose(*placement, {"", 0}, 3), (Cpus{3, 8, 9}));
  EXPECT_EQ(choose(*placement, {"", 1}, 1), (Cpus{8}));
  const std::string text = parse_fails(*placement, "4");
  EXPECT_TRUE(has(text, "CPU 4 of \"4\" may not be used; usable: 3,8-9")) << text;
  EXPECT_TRUE(has(text, "cpuset")) << text;
}

TEST(Placement, ParsesLists) {
  const auto placement = machine("core:8 pu:1");
  Cpus cpus;
  EXPECT_EQ(placement->parse_list("1,3-5", &cpus), 0);
  EXPECT_EQ(cpus, (Cpus{1, 3, 4, 5}));
  EXPECT_EQ(placement->parse_list("5,0", &cpus), 0);
  EXPECT_EQ(cpus, (Cpus{5, 0}));
}

TEST(Placement, RefusesBadLists) {
  const auto placement = machine("core:8 pu:1");
  EXPECT_TRUE(has(parse_fails(*placement, "8"), "CPU 8 of \"8\" does not exist; usable: 0-7"));
  EXPECT_TRUE(has(parse_fails(*placement, "1,0-2"), "CPU 1 is named twice"));
  EXPECT_TRUE(has(parse_fails(*placement, ""), "a number is missing"));
  EXPECT_TRUE(has(parse_fails(*placement, "1,"), "a number is missing"));
  EXPECT_TRUE(has(parse_fails(*placement, "1,,2"), "a number is missing"));
  EXPECT_TRUE(has(parse_fails(*placement, "-3"), "a number is missing"));
  EXPECT_TRUE(has(parse_fails(*placement, "5-3"), "the range 5-3 falls"));
  EXPECT_TRUE(has(parse_fails(*placement, "1-2-3"), "\"2-3\" is not a CPU number"));
  EXPECT_TRUE(has(parse_fails(*placement, "a"), "\"a\" is not a CPU number"));
  EXPECT_TRUE(has(parse_fails(*placement, "1 "), "\"1 \" is not a CPU number"));
  EXPECT_TRUE(has(parse_fails(*placement, "0x1"), "is not a CPU number"));
  EXPECT_TRUE(has(parse_fails(*placement, "99999999999"), "is not a CPU number"));
  EXPECT_TRUE(has(parse_fails(*placement, "0-99999"), "is not a CPU number"));
}

/// A topology as a file, with a PCI device below the second package.
class Xml : public testing::Test {
 protected:
  /// Creates a placement on it. @param allowed mask of the CPUs that may be used.
  int create(const std::string& allowed, std::unique_ptr<Placement>* out) {
    std::string text = kText;
    text.replace(text.find("0xe"), 3, allowed);
    std::ofstream(file_.path()) << text;
    return create_on("HWLOC_XMLFILE", file_.path(), out);
  }

  static constexpr const char* kText = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0xf" complete_cpuset="0xf" allowed_cpuset="0xe"
   nodeset="0x3" complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
    complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1"
     complete_nodeset="0x1" gp_index="3" local_memory="1"/>
   <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
     complete_nodeset="0x1" gp_index="4">
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1"
      complete_nodeset="0x1" gp_index="5"/></object>
   <object type="Core" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
     complete_nodeset="0x1" gp_index="6">
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1"
      complete_nodeset="0x1" gp_index="7"/></object>
  </object>
  <object type="Package" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
    complete_nodeset="0x2" gp_index="8">
   <object type="NUMANode" os_index="1" cpuset="0xc" complete_cpuset="0xc" nodeset="0x2"
     complete_nodeset="0x2" gp_index="9" local_memory="1"/>
   <object type="Core" os_index="0" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2"
     complete_nodeset="0x2" gp_index="10">
    <object type="PU" os_index="2" cpuset="0x4" complete_cpuset="0x4" nodeset="0x2"
      complete_nodeset="0x2" gp_index="11"/></object>
   <object type="Core" os_index="1" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2"
     complete_nodeset="0x2" gp_index="12">
    <object type="PU" os_index="3" cpuset="0x8" complete_cpuset="0x8" nodeset="0x2"
      complete_nodeset="0x2" gp_index="13"/></object>
   <object type="Bridge" gp_index="14" bridge_type="0-1" depth="0" bridge_pci="0000:[03-03]">
    <object type="PCIDev" gp_index="15" pci_busid="0000:03:00.0"
      pci_type="0280 [10ee:7210] [0000:0000] 00" pci_link_speed="0.000000"/>
   </object>
  </object>
 </object>
</topology>
)";
  TempFile file_;
};

TEST_F(Xml, RefusesAMachineWithoutCpus) {
  std::unique_ptr<Placement> none;
  testing::internal::CaptureStderr();
  EXPECT_EQ(create("0x0", &none), -EINVAL);
  EXPECT_EQ(none, nullptr);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "no CPU may be used"));
}

TEST_F(Xml, ChoosesNearTheCard) {
  std::unique_ptr<Placement> placement;
  ASSERT_EQ(create("0xe", &placement), 0);
  EXPECT_EQ(placement->cpus(), (Cpus{1, 2, 3}));
  EXPECT_EQ(choose(*placement, {"0000:03:00.0", -1}, 3), (Cpus{2, 3, 1}));
  EXPECT_EQ(choose(*placement, {"0000:04:00.0", 1}, 1),
            (Cpus{2}));  // unknown card: the node counts
  EXPECT_EQ(choose(*placement, {"0000:04:00.0", -1}, 1), (Cpus{1}));
  EXPECT_EQ(choose(*placement, {"rubbish", -1}, 1), (Cpus{1}));
}

TEST(Placement, NearestCpusAreThoseOfTheNode) {
  const auto placement = machine(kTwoNodes);
  EXPECT_EQ(placement->nearest({"", 1}), (Cpus{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(placement->nearest({}), placement->cpus());
  EXPECT_EQ(placement->nearest({"", 7}), placement->cpus());
}

/// A copy of a system: two nodes of one CPU, distance 21, a card on node 1.
TEST(Placement, ReadsACopyOfASystem) {
  char name[] = "/tmp/riopmd-cores-XXXXXX";
  const std::string root = mkdtemp(name);
  const auto write = [&root](const std::string& path, const std::string& text) {
    const std::filesystem::path file = root + "/sys/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  };
  for (const auto& [path, text] :
       std::map<std::string, std::string>{{"devices/system/cpu/online", "0-1"},
                                          {"devices/system/cpu/possible", "0-1"},
                                          {"devices/system/node/online", "0-1"},
                                          {"devices/system/node/node0/cpumap", "1"},
                                          {"devices/system/node/node1/cpumap", "2"},
                                          {"devices/system/node/node0/distance", "10 21"},
                                          {"devices/system/node/node1/distance", "21 10"},
                                          {"bus/pci/devices/0000:03:00.0/vendor", "0x10ee"},
                                          {"bus/pci/devices/0000:03:00.0/device", "0x7210"},
                                          {"bus/pci/devices/0000:03:00.0/class", "0x028000"},
                                          {"bus/pci/devices/0000:03:00.0/local_cpus", "2"}}) {
    write(path, text);
  }
  for (const std::string cpu : {"0", "1"}) {
    const std::string topology = "devices/system/cpu/cpu" + cpu + "/topology/";
    write("devices/system/cpu/cpu" + cpu + "/online", "1");
    write(topology + "core_id", cpu);
    write(topology + "physical_package_id", cpu);
    write(topology + "thread_siblings", cpu == "0" ? "1" : "2");
    write(topology + "core_siblings", cpu == "0" ? "1" : "2");
  }
  std::unique_ptr<Placement> placement;
  ASSERT_EQ(Placement::create(&placement, root), 0);
  std::filesystem::remove_all(root);
  EXPECT_EQ(placement->cpus(), (Cpus{0, 1}));
  EXPECT_EQ(placement->nearest({"0000:03:00.0", -1}), (Cpus{1}));
  EXPECT_EQ(placement->numa_node_of(1), 1);
  EXPECT_EQ(placement->numa_distance(0, 1), 21u);
  EXPECT_EQ(placement->numa_distance(1, 1), 10u);
  EXPECT_EQ(placement->numa_distance(0, 5), 0u);
  EXPECT_EQ(getenv("HWLOC_FSROOT"), nullptr);
}

TEST(Placement, ReadsThisMachine) {
  std::unique_ptr<Placement> placement;
  ASSERT_EQ(Placement::create(&placement), 0);
  ASSERT_FALSE(placement->cpus().empty());
  const Cpus chosen = choose(*placement, {}, 1);
  std::thread([&] {
    ASSERT_EQ(pin_this_thread(chosen[0]), 0);
    EXPECT_EQ(sched_getcpu(), static_cast<int>(chosen[0]));
    // A thread may only use the CPUs that its affinity allows.
    std::unique_ptr<Placement> inner;
    ASSERT_EQ(Placement::create(&inner), 0);
    EXPECT_EQ(inner->cpus(), chosen);
  }).join();
}

TEST(Pin, RefusesMissingCpus) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(pin_this_thread(1u << 20), -EINVAL);
  EXPECT_EQ(pin_this_thread(1023), -EINVAL);
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "CPU 1023"));
}

TEST(CpuList, FormatsRanges) {
  EXPECT_EQ(format_cpu_list({}), "");
  EXPECT_EQ(format_cpu_list(Cpus{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
}  // namespace rio::pmd::cores

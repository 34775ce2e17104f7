// The file by which a port shows the counts of its rails to other programs.
#include "lib/msg/rail_page.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/own_folder.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/lib/msg/rails_fixture.hpp"

namespace rio::msg::test {
namespace {

namespace fs = std::filesystem;

class RailPageTest : public testing::Test {
 protected:
  RailPageTest() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~RailPageTest() override { unsetenv("RIO_RUNTIME_DIR"); }

  [[nodiscard]] std::string folder() const {
    return base::runtime_base() + "/" + base::user_folder_name();
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    if (fs::exists(folder())) {
      for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
        names.push_back(entry.path().filename());
      }
    }
    return names;
  }
  static std::vector<RailStats> some_stats() {
    std::vector<RailStats> stats(2);
    stats[0].sent = 1;
    stats[0].received_bytes = UINT64_MAX;
    stats[1].downs = 5;
    stats[1].gone = 1;
    return stats;
  }

  const std::vector<std::string> cards_ = {"udp:a/0", "udp:b/0"};
  rio::test::TempDir dir_;
};

TEST_F(RailPageTest, OtherProgramsReadWhatWasWritten) {
  EXPECT_TRUE(read_rail_pages().empty()) << "there is no folder";
  RailPage page;
  EXPECT_FALSE(page.is_there());
  ASSERT_EQ(page.create(7, cards_), 0);
  EXPECT_TRUE(page.is_there());
  std::vector<PortRails> ports = read_rail_pages();
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].time_ns, 0u);
  page.write(1234, some_stats());
  ports = read_rail_pages();
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(ports[0].dest_id, 7u);
  EXPECT_EQ(ports[0].time_ns, 1234u);
  ASSERT_EQ(ports[0].rails.size(), 2u);
  EXPECT_EQ(ports[0].rails[1].card, "udp:b/0");
  EXPECT_EQ(ports[0].rails[0].stats.sent, 1u);
  EXPECT_EQ(ports[0].rails[0].stats.received_bytes, UINT64_MAX);
  EXPECT_EQ(ports[0].rails[1].stats.downs, 5u);
  EXPECT_EQ(ports[0].rails[1].stats.gone, 1u);
}

TEST_F(RailPageTest, EachPortHasAFileWhichGoesWithIt) {
  auto first = std::make_unique<RailPage>();
  RailPage second;
  ASSERT_EQ(first->create(1, cards_), 0);
  ASSERT_EQ(second.create(2, std::array<std::string, 1>{std::string(500, 'x')}), 0);
  EXPECT_EQ(read_rail_pages().size(), 2u);
  first.reset();
  const std::vector<PortRails> ports = read_rail_pages();
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0].dest_id, 2u);
  EXPECT_EQ(ports[0].rails[0].card, std::string(127, 'x')) << "a long name is cut";
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(RailPageTest, TheFileOfAProgramThatDiedIsRemoved) {
  const auto leave_a_page = [&] {
    const pid_t child = fork();
    if (child == 0) {
      auto* const page = new RailPage;
      _exit(page->create(3, cards_) == 0 ? 0 : 1);  // the page is not destroyed
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(files().size(), 1u);
  };
  leave_a_page();
  EXPECT_TRUE(read_rail_pages().empty());
  EXPECT_TRUE(files().empty()) << "by a reader";
  leave_a_page();
  RailPage page;
  ASSERT_EQ(page.create(4, cards_), 0);
  EXPECT_EQ(files().size(), 1u) << "by the next port";
}

TEST_F(RailPageTest, ACopyInAChildDoesNotRemoveTheFile) {
  auto page = std::make_unique<RailPage>();
  ASSERT_EQ(page->create(5, cards_), 0);
  const pid_t child = fork();
  if (child == 0) {
    page.reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(read_rail_pages().size(), 1u);
}

TEST_F(RailPageTest, FilesThatMakeNoSenseAreLeftOut) {
  RailPage page;
  ASSERT_EQ(page.create(6, cards_), 0);
  page.write(1, some_stats());
  const std::string path = folder() + "/" + files().front();
  const auto size = fs::file_size(path);
  constexpr uint32_t kCountAt = 16;
  constexpr uint32_t kSequenceAt = 24;
  const auto poke = [&](uint32_t at, uint64_t value) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  std::ofstream(folder() + "/rails.short") << "hello";
  std::ofstream(folder() + "/rails.other") << std::string(size, 'x');
  fs::create_directory(folder() + "/rails.folder");
  fs::create_symlink(path, folder() + "/rails.link");
  EXPECT_EQ(read_rail_pages().size(), 1u);
  for (const uint64_t count : {uint64_t{0}, uint64_t{9}, UINT64_MAX}) {
    poke(kCountAt, count);
    EXPECT_TRUE(read_rail_pages().empty()) << count;
  }
  poke(kCountAt, 2);
  EXPECT_EQ(read_rail_pages().size(), 1u);
  poke(kSequenceAt, 3);
  EXPECT_TRUE(read_rail_pages().empty()) << "its program was stopped while it wrote";
  poke(kSequenceAt, 4);
  EXPECT_EQ(read_rail_pages().size(), 1u);
}

TEST_F(RailPageTest, WithoutAFolderThereIsAWarning) {
  setenv("RIO_RUNTIME_DIR", dir_.at("missing").c_str(), 1);
  rio::test::LogCapture log;
  RailPage page;
  EXPECT_NE(page.create(8, cards_), 0);
  EXPECT_FALSE(page.is_there());
  EXPECT_TRUE(log.one_line_with({"rio-tool top", "missing"}));
}

class PortPageTest : public RailsTest {};

TEST_F(PortPageTest, APortWithSeveralRailsShowsThem) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "xy"));
  port(Net::config_of(3));
  const Member at_a = member(a, 0);
  const Member at_b = member(b, 0);
  EXPECT_EQ(exchange(at_a, route(at_a, 2, 0), at_b, 0, 100), numbers(0, 100));
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 2; }));
  const auto shown = [&] {
    const std::vector<PortRails> ports = read_rail_pages();
    EXPECT_EQ(ports.size(), 2u) << "not the port with one card";
    for (const PortRails& one : ports) {
      if (one.dest_id == 1 && one.rails.size() == 2) {
        return one;
      }
    }
    return PortRails{.rails = std::vector<PortRails::Row>(2)};
  };
  ASSERT_TRUE(work_until([&] {
    const PortRails now = shown();
    return now.rails[0].stats.paths_up == 1 && now.rails[1].stats.paths_up == 1 &&
           now.rails[0].stats.sent + now.rails[1].stats.sent >= 100;
  }));
  const PortRails now = shown();
  EXPECT_NE(now.time_ns, 0u);
  EXPECT_EQ(now.rails[0].card, "shm:x/1");
}

}  // namespace
}  // namespace rio::msg::test

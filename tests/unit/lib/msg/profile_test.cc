// Profiles: parsing of any text, and the places where the library looks for the file.
#include "lib/msg/profile.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/msg/message_port.hpp"
#include "lib/tag/tagged_context.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::msg {
namespace {

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() {
    unsetenv("RIO_PROFILE");
    setenv("XDG_CONFIG_HOME", folder_.at("config").c_str(), 1);
  }
  ~ProfileTest() override {
    unsetenv("RIO_PROFILE");
    unsetenv("XDG_CONFIG_HOME");
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_.at(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  static uint64_t parsed(const std::string& text) {
    Profile profile;
    EXPECT_EQ(parse_profile(text, "test", &profile), 0) << text;
    return profile.eager_bytes;
  }

  test::TempDir folder_;
};

TEST_F(ProfileTest, ValidProfiles) {
  EXPECT_EQ(parsed(""), 0u);
  EXPECT_EQ(parsed("# nothing\n\n  \t\r\n"), 0u);
  EXPECT_EQ(parsed("eager_bytes = 4096\n"), 4096u);
  EXPECT_EQ(parsed("# x\r\n eager_bytes=256# least\r\n"), 256u);
  EXPECT_EQ(parsed("eager_bytes = 1048576"), 1048576u);
  EXPECT_EQ(parsed("eager_bytes = 1M"), 1048576u);
  EXPECT_EQ(parsed("eager_bytes = 0x1000"), 4096u);
  EXPECT_EQ(parsed("eager_bytes = 512\neager_bytes = 1024\n"), 1024u);
  EXPECT_EQ(parsed(to_text({.eager_bytes = 777})), 777u);
}

TEST_F(ProfileTest, InvalidProfiles) {
  for (const char* text :
       {"eager_bytes", "eager_bytes =", "eager_bytes = -1", "eager_bytes = 255",
        "eager_bytes = 1048577", "eager_bytes = 99999999999999999999999", "eager_bytes = 4096 x",
        "eager_bytes = 4KB", "eager = 4096", "= 4096", "\x01\x02\xFF", "eager_bytes = 4096\n["}) {
    Profile profile{.eager_bytes = 5};
    EXPECT_EQ(parse_profile(text, "test", &profile), -EINVAL) << text;
    EXPECT_EQ(profile.eager_bytes, 5u);
  }
  Profile profile;
  EXPECT_EQ(parse_profile(std::string(5000, '\n'), "test", &profile), -EINVAL);
}

TEST_F(ProfileTest, IsFoundInItsPlaces) {
  Profile profile;
  EXPECT_EQ(load_profile("", &profile), 0);  // there is no profile
  EXPECT_EQ(profile.eager_bytes, 0u);
  const std::string usual = write("config/riopmd/profile", "eager_bytes = 1000\n");
  EXPECT_EQ(profile_path(), usual);
  EXPECT_EQ(load_profile("", &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 1000u);

  setenv("RIO_PROFILE", write("other", "eager_bytes = 2000\n").c_str(), 1);
  EXPECT_EQ(load_profile("", &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 2000u);
  EXPECT_EQ(load_profile(usual, &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 1000u);
  EXPECT_EQ(load_profile("none", &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 0u);

  setenv("RIO_PROFILE", folder_.at("missing").c_str(), 1);
  EXPECT_EQ(load_profile("", &profile),
            -ENOENT);  // RIO_PROFILE names a file, so its absence is an error
  EXPECT_EQ(load_profile(folder_.at("."), &profile), -EISDIR);
  const std::string marked = write("marked",
                                   "\xEF\xBB\xBF"
                                   "eager_bytes = 3000\r\n");
  EXPECT_EQ(load_profile(marked, &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 3000u);
  setenv("RIO_PROFILE", "none", 1);
  EXPECT_EQ(profile_path(), "");
  EXPECT_EQ(load_profile("", &profile), 0);
  EXPECT_EQ(profile.eager_bytes, 0u);
}

TEST_F(ProfileTest, PortsAndEndpointsUseIt) {
  PortConfig config;
  config.profile = write("mine", "eager_bytes = 300\n");
  std::unique_ptr<MessagePort> port;
  ASSERT_EQ(MessagePort::open(config, &port), 0);
  EXPECT_EQ(port->profile().eager_bytes, 300u);
  std::unique_ptr<tag::TaggedContext> endpoint;
  ASSERT_EQ(tag::TaggedContext::create(*port, 0, {}, &endpoint), 0);
  // A longer message is not copied, so its send is not done before a receive takes it.
  std::string bytes(301, 'x');
  tag::SendRequest request;
  EXPECT_EQ(endpoint->send(endpoint->self(), 1, bytes.data(), 300, request), 1);
  EXPECT_EQ(endpoint->send(endpoint->self(), 1, bytes.data(), 301, request), 0);
  endpoint.reset();
  EXPECT_EQ(request.status, -ECANCELED);

  port.reset();
  config.profile = write("bad", "eager_bytes = many\n");
  EXPECT_EQ(MessagePort::open(config, &port), -EINVAL);
}

}  // namespace
}  // namespace rio::msg

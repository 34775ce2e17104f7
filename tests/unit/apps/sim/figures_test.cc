#include "apps/sim/figures.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::simapp {
namespace {

FigureData make(const char* name, uint32_t nodes_max) {
  FigureData figure;
  std::string error;
  EXPECT_EQ(make_figure(name, {}, nodes_max, {}, &figure, &error), 0) << error;
  return figure;
}

TEST(Figures, ToriOfPowersOfTwo) {
  EXPECT_EQ(torus_of(2), "torus:2");
  EXPECT_EQ(torus_of(4), "torus:2x2");
  EXPECT_EQ(torus_of(16), "torus:4x2x2");
  EXPECT_EQ(torus_of(128), "torus:8x4x4");
  EXPECT_EQ(torus_of(4096), "torus:16x16x16");
}

TEST(Figures, EachCurveHasAValueForEachPlace) {
  for (const FigureName& name : figure_names()) {
    const FigureData figure = make(name.name, 8);
    EXPECT_EQ(figure.name, name.name);
    EXPECT_GT(figure.series.size(), 3u);
    for (const FigureSeries& series : figure.series) {
      EXPECT_EQ(series.values.size(), figure.x.size()) << series.name;
    }
    EXPECT_EQ(to_json(figure)["x"].size(), figure.x.size());
    EXPECT_NE(to_text(figure).find(figure.series.back().name), std::string::npos);
  }
}

TEST(Figures, KnownValues) {
  const FigureData figure = make("nodes", 4);
  ASSERT_EQ(figure.x, (std::vector<double>{2, 4}));
  EXPECT_EQ(figure.series.front().values.front(), 1.356);  // host 1,100, card 40, two hops
  EXPECT_EQ(figure.series.back().values.front(), 0.108);
  const FigureData saved = make("overhead", 2);
  EXPECT_DOUBLE_EQ(saved.series[0].values[0], 100 * (1 - 256.0 / 556));
  EXPECT_EQ(saved.x.front(), 0.3);
  EXPECT_EQ(saved.x.back(), 2.4);
}

TEST(Figures, UnknownNamesAndBarriersThatFail) {
  FigureData figure;
  std::string error;
  EXPECT_EQ(make_figure("pie", {}, 8, {}, &figure, &error), -EINVAL);
  EXPECT_NE(error.find("nodes, schemes, skew and overhead"), std::string::npos);
  BarrierPlan plan;
  plan.within_ns = 10;
  EXPECT_EQ(make_figure("nodes", plan, 8, {}, &figure, &error), -EPROTO);
  EXPECT_TRUE(figure.series.empty());
}

}  // namespace
}  // namespace rio::simapp

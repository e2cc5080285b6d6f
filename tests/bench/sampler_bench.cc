// What it costs to make an order: items are samples.

#include <numeric>
#include <random>

#include <benchmark/benchmark.h>

#include "sampler/order_source.h"
#include "sampler/randperm.h"
#include "sampler/recipe_text.h"

namespace optcache::sampler {
namespace {

constexpr std::int64_t kImageNet = 1'281'167;

void CountItems(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

// The peer: the same algorithm with the standard generator, one place after the other.
void BM_PlainRandperm(benchmark::State& state) {
  const auto n = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    std::mt19937 generator(5);
    std::vector<SampleId> order(n);
    std::iota(order.begin(), order.end(), SampleId{0});
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      std::swap(order[i], order[i + static_cast<std::uint32_t>(generator()) % (n - i)]);
    }
    benchmark::DoNotOptimize(order.data());
  }
  CountItems(state);
}
BENCHMARK(BM_PlainRandperm)->Arg(100'000)->Arg(kImageNet)->Arg(20'000'000);

void BM_Randperm(benchmark::State& state) {
  const auto variant = static_cast<Randperm>(state.range(1));
  for (auto _ : state) {
    Mt19937 generator(5);
    benchmark::DoNotOptimize(
        MakeRandperm(static_cast<std::uint64_t>(state.range(0)), variant, generator));
  }
  CountItems(state);
}
BENCHMARK(BM_Randperm)
    ->ArgNames({"n", "wide"})
    ->ArgsProduct({{100'000, kImageNet, 20'000'000}, {0, 1}});

void BM_PassOrder(benchmark::State& state) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  OrderSource source = OrderSource::Make({.size = size, .world = 8}).value();
  std::uint64_t epoch = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(source.PassOrder(epoch++));
  CountItems(state);
}
BENCHMARK(BM_PassOrder)->Arg(kImageNet);

// One of each kind, at ImageNet's size.
void BM_Recipe(benchmark::State& state, const char* text) {
  OrderSource source = OrderSource::Make(ParseRecipe(text).value()).value();
  std::uint64_t epoch = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(source.PassOrder(epoch++));
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(PassLength(source.recipe())));
}
BENCHMARK_CAPTURE(BM_Recipe, distributed, "torch-distributed size=1281167 world=8");
BENCHMARK_CAPTURE(BM_Recipe, accelerate, "torch-distributed size=1281167 world=8 block=32");
BENCHMARK_CAPTURE(BM_Recipe, random, "torch-random size=1281167 base_seed=never");
BENCHMARK_CAPTURE(BM_Recipe, replacement,
                  "torch-random size=1281167 base_seed=never replacement=true");
BENCHMARK_CAPTURE(BM_Recipe, megatron,
                  "megatron-cyclic size=1281167 world=8 drop_last=true block=32");
BENCHMARK_CAPTURE(BM_Recipe, spdl, "spdl-random size=1281167 world=8 drop_last=true");
BENCHMARK_CAPTURE(BM_Recipe, subset,
                  "torch-distributed size=1281167 world=8 subset=0+640583,700000+640584");

void BM_OrderCrc(benchmark::State& state) {
  std::vector<SampleId> order(static_cast<std::size_t>(state.range(0)));
  std::iota(order.begin(), order.end(), SampleId{0});
  for (auto _ : state)
    benchmark::DoNotOptimize(OrderCrc(order));
  CountItems(state);
}
BENCHMARK(BM_OrderCrc)->Arg(kImageNet);

void BM_SkipWords(benchmark::State& state) {
  Mt19937 generator(5);
  for (auto _ : state)
    generator.Discard(static_cast<std::uint64_t>(state.range(0)));
  CountItems(state);
}
BENCHMARK(BM_SkipWords)->Arg(kImageNet);

}  // namespace
}  // namespace optcache::sampler

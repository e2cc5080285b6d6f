#include "sidecar/prefetch/reader_table.h"

#include "handoff/layout.h"
#include "sampler/id_list.h"
#include "sidecar/ports/stream_name.h"
#include "unit/sidecar/fakes.h"
#include "wire/stream_id.h"

namespace optcache::sidecar {
namespace {

using std::chrono::seconds;

class ReaderTableTest : public testing::Test {
 protected:
  AttachRequest Request(Rank rank = 0, std::uint32_t world = 2) {
    return {.dataset = &dataset_,
            .recipe = {.size = dataset_.samples(), .seed = 3, .world = world},
            .rank = rank};
  }
  PassSpan Span(PassNumber pass, std::uint64_t epoch) {
    return {.pass = pass, .epoch = epoch, .begin = 0, .end = 5};
  }
  std::uint32_t Crc(std::uint64_t epoch) {
    return FakeOrders::Make({.recipe = Request().recipe, .epoch = epoch, .end = 5})->crc;
  }
  std::vector<wire::StreamProgress> Progress() { return node_.All<wire::StreamProgress>(); }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeDataset dataset_{"images", std::vector<ByteCount>(10, 10)};
  FakeNode node_;
  FakeOrders orders_;
  ReaderTable readers_{node_, orders_, alarms_, {}, [] {}};
};

TEST_F(ReaderTableTest, TellsTheNodeWhoReads) {
  const auto id = readers_.Attach(1, Request(1));
  ASSERT_TRUE(id.has_value());
  const auto attached = node_.All<wire::StreamAttach>();
  ASSERT_EQ(attached.size(), 1U);
  EXPECT_EQ(attached[0].stream_name, "local/local/images/train");
  EXPECT_EQ(attached[0].stream, wire::StreamIdOf("local/local/images/train", 1));
  EXPECT_EQ(attached[0].dataset_name, "local/images");
  EXPECT_EQ(attached[0].rank, 1U);
  EXPECT_EQ(attached[0].world, 2U);
  EXPECT_EQ(attached[0].seed, 3);
  EXPECT_EQ(readers_.Find(attached[0].stream, 1), *id);
}

TEST_F(ReaderTableTest, AJobMaySayWhoItIs) {
  AttachRequest request = Request(0);
  request.owner = "job-7";
  request.incarnation = 3;
  ASSERT_TRUE(readers_.Attach(1, request).has_value());
  const auto attached = node_.All<wire::StreamAttach>();
  ASSERT_EQ(attached.size(), 1U);
  EXPECT_EQ(attached[0].stream_name, "local/job-7/images/train");
  EXPECT_EQ(attached[0].stream, wire::StreamIdOf("local/job-7/images/train", 3));
}

TEST_F(ReaderTableTest, RanksThatDisagreeAreToldSo) {
  ASSERT_TRUE(readers_.Attach(1, Request(0)).has_value());
  const auto refusal = [this](auto change) {
    AttachRequest other = Request(1);
    change(other);
    const auto refused = readers_.Attach(2, other);
    return refused ? "" : refused.error().message();
  };
  EXPECT_EQ(refusal([](AttachRequest& r) { r.recipe.drop_last = true; }),
            "loader 'local/local/images/train': ranks 1 and 0 differ in drop_last: true and false: "
            "all ranks of a loader need the same sampler");
  EXPECT_EQ(refusal([](AttachRequest& r) { r.known = false; }),
            "loader 'local/local/images/train': ranks 1 and 0 differ in order known: false and "
            "true: all ranks of a loader need the same sampler");
}

TEST_F(ReaderTableTest, TwoLoadersMayDiffer) {
  ASSERT_TRUE(readers_.Attach(1, Request(0)).has_value());
  AttachRequest validation = Request(0);
  validation.loader = "val";
  validation.recipe.seed = 4;
  EXPECT_TRUE(readers_.Attach(1, validation).has_value());
}

TEST_F(ReaderTableTest, AnotherJobOfThatNameLeavesTheFirstAlone) {
  ReaderTable readers(node_, orders_, alarms_, {.several_jobs = true}, [] {});
  AttachRequest first = Request(0, 1);
  first.process = 10;
  const auto id = readers.Attach(1, first);
  ASSERT_TRUE(readers.Begin(*id, Span(0, 0), Crc(0)).ok());
  AttachRequest second = Request(0, 1);
  second.process = 11;
  second.recipe.seed = 4;
  const auto other = readers.Attach(2, second);
  ASSERT_NE(other, id);
  EXPECT_EQ(node_.All<wire::StreamAttach>().back().stream_name, "local/local/images/train-2");
  EXPECT_EQ(readers.Find(*id)->owner(), 1U);
  EXPECT_EQ(readers.Find(*id)->attachment().recipe.seed, 3);
  EXPECT_NE(readers.Find(*id)->current(), nullptr);
  // Its own process attaches again, and a new one when it has ended.
  EXPECT_EQ(readers.Attach(3, first), id);
  readers.OnClientGone(3);
  first.process = 12;
  EXPECT_EQ(readers.Attach(4, first), id);
}

TEST_F(ReaderTableTest, WhereThereIsOneJobAProcessTakesTheOthersPlace) {
  AttachRequest request = Request(0);
  request.process = 10;
  const auto id = readers_.Attach(1, request);
  request.process = 11;
  EXPECT_EQ(readers_.Attach(2, request), id);
}

TEST_F(ReaderTableTest, ARankThatAttachesAgainMayHaveAnotherSampler) {
  const auto id = readers_.Attach(1, Request(0));
  AttachRequest again = Request(0);
  again.recipe.seed = 4;
  EXPECT_EQ(readers_.Attach(2, again), id);
}

// A script that makes its loader anew for each epoch: the old one dies after the new one attached.
TEST_F(ReaderTableTest, OnlyWhoAttachedLastDetaches) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_EQ(readers_.Attach(2, Request(0)), id);
  readers_.Detach(1, *id);
  readers_.OnClientGone(1);
  EXPECT_TRUE(readers_.Begin(*id, Span(0, 0), std::nullopt).ok());
  readers_.Detach(2, *id);
  EXPECT_EQ(readers_.Begin(*id, Span(1, 1), std::nullopt).code(), Code::kNotFound);
}

TEST_F(ReaderTableTest, RefusesWhatCannotBeRead) {
  EXPECT_FALSE(readers_.Attach(1, Request(2)).has_value()) << "rank beyond the world";
  AttachRequest part = Request(0);
  part.recipe.size = 9;
  EXPECT_FALSE(readers_.Attach(1, part).has_value()) << "not the whole dataset";
  EXPECT_EQ(readers_.Begin(7, Span(0, 0), std::nullopt).code(), Code::kNotFound);
  const auto id = readers_.Attach(1, Request(0));
  EXPECT_EQ(readers_.Begin(*id, {.begin = 0, .end = 6}, std::nullopt).code(),
            Code::kInvalidArgument);
}

TEST_F(ReaderTableTest, ReplaysTheOrderOfAPass) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 8), Crc(8)).ok());
  EXPECT_FALSE(readers_.Find(*id)->current()->predicted());
  orders_.AnswerAll();
  EXPECT_TRUE(readers_.Find(*id)->current()->predicted());
  EXPECT_TRUE(Progress().back().order_known);
  EXPECT_EQ(Progress().back().epoch, 8U);
}

TEST_F(ReaderTableTest, ReplaysNoPassThatIsOverBeforeItsTurn) {
  const auto id = readers_.Attach(1, Request(0));
  for (PassNumber pass = 0; pass < 100; ++pass)
    ASSERT_TRUE(readers_.Begin(*id, Span(pass, pass), Crc(pass)).ok());
  ASSERT_EQ(orders_.pending.size(), 1U);
  EXPECT_EQ(orders_.pending.front().first.epoch, 0U);
  orders_.AnswerOne();
  ASSERT_EQ(orders_.pending.size(), 1U);
  EXPECT_EQ(orders_.pending.front().first.epoch, 99U);
  orders_.AnswerOne();
  EXPECT_TRUE(orders_.pending.empty());
  EXPECT_TRUE(readers_.Find(*id)->current()->predicted());
}

TEST_F(ReaderTableTest, LoadersThatComeAndGoDoNotPileUpOrders) {
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 2 * ReaderTable::kReadersMax; ++i) {
    AttachRequest request = Request(0);
    request.loader = std::to_string(i);
    const auto id = readers_.Attach(1, request);
    if (!id) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), Crc(0)).ok());
    readers_.Detach(1, *id);
  }
  EXPECT_EQ(orders_.pending.size(), ReaderTable::kReadersMax);
  EXPECT_EQ(refused, ReaderTable::kReadersMax);
  orders_.AnswerAll();
  EXPECT_TRUE(readers_.Attach(1, Request(0)).has_value());
}

TEST_F(ReaderTableTest, AnotherCrcIsAnUnknownOrder) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 8), Crc(8) + 1).ok());
  orders_.AnswerAll();
  EXPECT_FALSE(readers_.Find(*id)->current()->predicted());
  EXPECT_FALSE(Progress().back().order_known);
  ASSERT_TRUE(readers_.Begin(*id, Span(1, 9), Crc(9)).ok());
  orders_.AnswerAll();
  EXPECT_TRUE(readers_.Find(*id)->current()->predicted()) << "the next pass is trusted again";
  EXPECT_TRUE(Progress().back().order_known);
}

// The job's process was started with another seed than it says, or calls no set_epoch but counts
// epochs for us, or deals its samples otherwise: what it reads is not what its recipe gives.
TEST_F(ReaderTableTest, NothingIsStagedByAWrongRecipe) {
  const sampler::Recipe right{.size = 10, .seed = 3, .world = 2};
  sampler::Recipe other_seed = right;
  other_seed.seed = 4;
  sampler::Recipe other_blocks = right;
  other_blocks.block = 2;
  PassNumber pass = 0;
  const auto id = readers_.Attach(1, Request(0));
  for (const auto& [read, read_epoch] :
       {std::pair(other_seed, 8U), std::pair(right, 0U), std::pair(other_blocks, 8U)}) {
    const auto crc = FakeOrders::Make({.recipe = read, .epoch = read_epoch, .end = 5})->crc;
    ASSERT_TRUE(readers_.Begin(*id, Span(pass++, 8), crc).ok());
    orders_.AnswerAll();
    EXPECT_EQ(readers_.Find(*id)->current()->NextToStage(), std::nullopt);
    EXPECT_FALSE(Progress().back().order_known) << "so nodes plan nothing by it";
  }
  ASSERT_TRUE(readers_.Begin(*id, Span(pass, 8), Crc(8)).ok());
  orders_.AnswerAll();
  EXPECT_EQ(readers_.Find(*id)->current()->NextToStage(), 0U);
}

// set_epoch forgotten, and the client says so: every pass is epoch 0.
TEST_F(ReaderTableTest, AForgottenSetEpochIsPredictedFromTheSecondPassOn) {
  const auto id = readers_.Attach(1, Request(0));
  for (PassNumber pass = 0; pass < 3; ++pass) {
    ASSERT_TRUE(readers_.Begin(*id, Span(pass, 0), Crc(0)).ok());
    orders_.AnswerAll();
    Pass* const current = readers_.Find(*id)->current();
    ASSERT_TRUE(current->predicted());
    for (std::uint64_t i = 0; i < 5; ++i)
      current->PassOver(i);
    readers_.Predict();
    orders_.AnswerAll();
    EXPECT_EQ(readers_.Find(*id)->next()->span(), Span(pass + 1, pass == 0 ? 1 : 0));
  }
}

TEST_F(ReaderTableTest, PredictsTheNextPassByTheStepOfTheLast) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), Crc(0)).ok());
  ASSERT_TRUE(readers_.Begin(*id, Span(1, 2), Crc(2)).ok());
  orders_.AnswerAll();
  Pass* current = readers_.Find(*id)->current();
  for (std::uint64_t i = 0; i < 5; ++i)
    current->PassOver(i);
  readers_.Predict();
  ASSERT_NE(readers_.Find(*id)->next(), nullptr);
  EXPECT_EQ(readers_.Find(*id)->next()->span(), Span(2, 4));
  orders_.AnswerAll();
  const Pass* next = readers_.Find(*id)->next();
  ASSERT_TRUE(readers_.Begin(*id, Span(2, 4), Crc(4)).ok());
  EXPECT_EQ(readers_.Find(*id)->current(), next) << "what was staged for it stays";
  EXPECT_TRUE(readers_.Find(*id)->current()->predicted());
}

TEST_F(ReaderTableTest, AnOtherPassThanPredictedIsReplayedAnew) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), Crc(0)).ok());
  orders_.AnswerAll();
  Pass* current = readers_.Find(*id)->current();
  for (std::uint64_t i = 0; i < 5; ++i)
    current->PassOver(i);
  readers_.Predict();
  orders_.AnswerAll();
  ASSERT_TRUE(readers_.Begin(*id, Span(1, 0), Crc(0)).ok());  // set_epoch was forgotten
  EXPECT_FALSE(readers_.Find(*id)->current()->predicted());
  orders_.AnswerAll();
  EXPECT_TRUE(readers_.Find(*id)->current()->predicted());
}

TEST_F(ReaderTableTest, APassSaidAgainGoesOn) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), Crc(0)).ok());
  orders_.AnswerAll();
  readers_.Find(*id)->current()->MarkAsked(0);
  ASSERT_TRUE(readers_.Attach(2, Request(0)).has_value());
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), Crc(0)).ok());
  EXPECT_TRUE(readers_.Find(*id)->current()->asked(0));
}

TEST_F(ReaderTableTest, ReportsOnceASecondAndAtTheEnd) {
  const auto id = readers_.Attach(1, Request(1));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), std::nullopt).ok());
  EXPECT_EQ(Progress().size(), 1U);
  Pass* pass = readers_.Find(*id)->current();
  pass->MarkAsked(0);
  pass->MarkDelivered(0);
  clock_.Advance(seconds(1));
  alarms_.RunDue();
  ASSERT_EQ(Progress().size(), 2U);
  EXPECT_EQ(Progress().back().start, 1U);
  EXPECT_EQ(Progress().back().position, 3U) << "index 1 of rank 1 in a world of 2";
  readers_.OnClientGone(1);
  EXPECT_TRUE(Progress().back().ended);
  clock_.Advance(seconds(5));
  alarms_.RunDue();
  EXPECT_EQ(Progress().size(), 3U);
}

TEST_F(ReaderTableTest, TellsANodeThatComesBackEverything) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), std::nullopt).ok());
  node_.sent.clear();
  readers_.OnNodeUp();
  EXPECT_EQ(node_.All<wire::StreamAttach>().size(), 1U);
  EXPECT_EQ(Progress().size(), 1U);
}

// A connection broke, or a generator was drawn from: the loader attaches again within its passes.
TEST_F(ReaderTableTest, PassesThatWereReadAreNotExpectedAgain) {
  AttachRequest request = Request(0);
  request.passes = 5;
  const auto id = readers_.Attach(1, request);
  ASSERT_TRUE(readers_.Begin(*id, Span(0, 0), std::nullopt).ok());
  ASSERT_TRUE(readers_.Begin(*id, Span(1, 1), std::nullopt).ok());
  request.passes_from = 0;
  ASSERT_EQ(readers_.Attach(2, request), id);
  EXPECT_EQ(node_.All<wire::StreamAttach>().back().passes, 5U);
  request.passes_from.reset();  // a new loader of that name
  ASSERT_EQ(readers_.Attach(3, request), id);
  EXPECT_EQ(node_.All<wire::StreamAttach>().back().passes, 2U + 5U);
}

TEST_F(ReaderTableTest, PassesAreCountedOnByWhoAttachesAgainAndAnewAfterAnEnd) {
  const auto id = readers_.Attach(1, Request(0));
  ASSERT_TRUE(readers_.Begin(*id, Span(4, 0), std::nullopt).ok());
  ASSERT_EQ(readers_.Attach(2, Request(0)), id);
  EXPECT_EQ(readers_.Find(*id)->first_pass(), 5U);
  readers_.OnClientGone(2);
  ASSERT_EQ(readers_.Attach(3, Request(0)), id);
  EXPECT_EQ(readers_.Find(*id)->first_pass(), 0U);
}

// --- Recipes as text, and lists -----------------------------------------------------------------

TEST_F(ReaderTableTest, TellsTheNodeInTextWhatTheFieldsCannotSay) {
  AttachRequest request = Request(1);
  request.recipe.block = 2;
  ASSERT_TRUE(readers_.Attach(1, request).has_value());
  EXPECT_FALSE(node_.All<wire::StreamAttach>().back().known) << "for nodes that are older";
  const auto orders = node_.All<wire::StreamOrder>();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].recipe, "torch-distributed size=10 seed=3 world=2 block=2");
  EXPECT_EQ(orders[0].rank, 1U);
  readers_.OnNodeUp();
  EXPECT_EQ(node_.All<wire::StreamOrder>().size(), 2U);
}

TEST_F(ReaderTableTest, ASubsetMustLieInTheDataset) {
  AttachRequest request = Request(0, 1);
  request.recipe.size = 4;
  request.recipe.subset = {{7, 4}};
  EXPECT_FALSE(readers_.Attach(1, request).has_value());
  request.recipe.subset = {{6, 4}};
  EXPECT_TRUE(readers_.Attach(1, request).has_value());
}

TEST_F(ReaderTableTest, TellsTheNodeWherePassesEnd) {
  AttachRequest request = Request();
  request.pass_reads = 2;
  const ReaderId id = readers_.Attach(1, request).value();
  const auto said = [this] { return node_.All<wire::StreamPassEnd>().back().reads; };
  EXPECT_EQ(said(), 2U) << "before the first pass";
  ASSERT_TRUE(readers_.Begin(id, Span(0, 0), std::nullopt).ok());
  readers_.Find(id)->current()->MarkAsked(4);
  clock_.Advance(seconds(1));
  alarms_.RunDue();
  EXPECT_EQ(said(), 0U) << "it goes on";
  ASSERT_TRUE(readers_.Begin(id, Span(1, 1), std::nullopt).ok());
  readers_.OnNodeUp();
  EXPECT_EQ(said(), 0U);
}

class TracedReaderTest : public ReaderTableTest {
 protected:
  ReaderId AttachTraced() {
    AttachRequest request = Request(0, 1);
    request.known = false;
    request.traced = true;
    return readers_.Attach(1, request).value();
  }
  Pass* current(ReaderId id) { return readers_.Find(id)->current(); }
};

TEST_F(TracedReaderTest, AListIsAnOrder) {
  const ReaderId id = AttachTraced();
  const std::vector<SampleId> list = {4, 4, 9, 0, 1};
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 0, 5, std::span(list).first(3)).ok());
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 3, 5, std::span(list).subspan(3)).ok());
  ASSERT_TRUE(readers_.Begin(id, Span(0, 0), sampler::OrderCrc(list)).ok());
  orders_.AnswerAll();
  ASSERT_TRUE(current(id)->predicted());
  EXPECT_EQ(current(id)->order()->ids, list);
  EXPECT_FALSE(node_.All<wire::StreamAttach>().back().known) << "for nodes that are older";
  const wire::StreamTrace sent{.stream = readers_.Find(id)->attachment().stream,
                               .bits = 4,
                               .length = 5,
                               .packed = {std::byte{0x44}, std::byte{0x09}, std::byte{0x01}}};
  EXPECT_EQ(node_.All<wire::StreamTrace>(), std::vector{sent});
  readers_.OnNodeUp();
  EXPECT_EQ(node_.All<wire::StreamTrace>(), (std::vector{sent, sent})) << "it may be another node";
}

TEST_F(TracedReaderTest, TheNextListIsStagedWhenItsTurnComes) {
  const ReaderId id = AttachTraced();
  const std::vector<SampleId> list = {4, 4, 9, 0, 1};
  const std::vector<SampleId> next_list = {3, 2};
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 0, 5, list).ok());
  ASSERT_TRUE(readers_.Begin(id, Span(0, 0), std::nullopt).ok());
  orders_.AnswerAll();
  for (std::uint64_t i = 0; i < 5; ++i)
    current(id)->PassOver(i);
  readers_.Predict();
  EXPECT_EQ(readers_.Find(id)->next(), nullptr) << "nobody knows it";
  ASSERT_TRUE(readers_.TakeTrace(id, 1, 0, 2, next_list).ok());
  readers_.Predict();
  orders_.AnswerAll();
  ASSERT_NE(readers_.Find(id)->next(), nullptr);
  EXPECT_EQ(readers_.Find(id)->next()->NextToStage(), 0U);
  // Another one in its place.
  ASSERT_TRUE(readers_.TakeTrace(id, 1, 0, 2, std::span(list).first(2)).ok());
  EXPECT_EQ(readers_.Find(id)->next(), nullptr);
}

TEST_F(TracedReaderTest, ALongListGoesByParts) {
  FakeDataset large("default/large", std::vector<ByteCount>(1U << 20U, 1));
  AttachRequest request = Request(0, 1);
  request.dataset = &large;
  request.known = false;
  request.traced = true;
  const ReaderId id = readers_.Attach(1, request).value();
  std::vector<SampleId> list(500'000);
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<SampleId>(i * 7919 % (1U << 20U));
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 0, list.size(), list).ok());
  std::vector<std::byte> packed;
  for (const auto& part : node_.All<wire::StreamTrace>()) {
    EXPECT_EQ(part.offset, packed.size());
    EXPECT_EQ(part.bits, 20);
    EXPECT_EQ(part.length, list.size());
    EXPECT_LE(part.packed.size(), wire::kMaxPartBytes);
    packed.insert(packed.end(), part.packed.begin(), part.packed.end());
  }
  EXPECT_EQ(AsText(packed), sampler::PackIds(list, 20));
  EXPECT_EQ(node_.All<wire::StreamTrace>().size(), 3U);
}

TEST_F(TracedReaderTest, WithoutItsListAPassIsReadAsItIsAskedFor) {
  const ReaderId id = AttachTraced();
  ASSERT_TRUE(readers_.Begin(id, Span(0, 0), std::nullopt).ok());
  EXPECT_TRUE(orders_.pending.empty());
  EXPECT_FALSE(current(id)->predicted());
}

TEST_F(TracedReaderTest, AListMayGrowWithThePass) {
  const ReaderId id = AttachTraced();
  ASSERT_TRUE(readers_.Begin(id, {.pass = 0, .begin = 0, .end = 0}, std::nullopt).ok());
  const std::vector<SampleId> batch = {7, 7, 2};
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 0, 0, batch).ok());
  ASSERT_TRUE(readers_.TakeTrace(id, 0, 3, 0, batch).ok());
  Pass& pass = *current(id);
  EXPECT_EQ(pass.NextToStage(), 0U);
  EXPECT_EQ(pass.span().end, 6U);
  EXPECT_TRUE(pass.Agrees(5, 2));
  EXPECT_FALSE(pass.Agrees(5, 3));
  EXPECT_TRUE(pass.Agrees(6, 3)) << "not known yet";
  EXPECT_EQ(pass.FindUnasked(2), 2U);
  pass.MarkAsked(2);
  EXPECT_EQ(pass.FindUnasked(2), 5U);
  EXPECT_FALSE(readers_.TakeTrace(id, 0, 9, 0, batch).ok()) << "three are missing";
}

TEST_F(TracedReaderTest, RefusesListsThatCannotBe) {
  const ReaderId id = AttachTraced();
  const std::vector<SampleId> list = {4, 9};
  const auto code = [&](PassNumber pass, std::uint64_t first, std::uint64_t length) {
    return readers_.TakeTrace(id, pass, first, length, list).code();
  };
  EXPECT_EQ(code(3, 0, 2), Code::kInvalidArgument) << "far ahead";
  EXPECT_EQ(code(0, 2, 4), Code::kInvalidArgument) << "without its beginning";
  EXPECT_EQ(code(0, 0, 1), Code::kInvalidArgument) << "longer than it says";
  EXPECT_EQ(code(0, 0, handoff::kMaxTraceIds + 1), Code::kInvalidArgument);
  EXPECT_EQ(code(0, 0, 0), Code::kInvalidArgument) << "grows before the pass";
  EXPECT_EQ(readers_.TakeTrace(id, 0, 0, 1, std::vector<SampleId>{10}).code(),
            Code::kInvalidArgument)
      << "no such sample";
  EXPECT_EQ(readers_.TakeTrace(99, 0, 0, 1, list).code(), Code::kNotFound);
  const auto replayed = readers_.Attach(2, [&] {
    AttachRequest other = Request(0, 1);
    other.loader = "other";
    return other;
  }());
  EXPECT_EQ(readers_.TakeTrace(*replayed, 0, 0, 2, list).code(), Code::kInvalidArgument)
      << "it has a recipe";
}

}  // namespace
}  // namespace optcache::sidecar

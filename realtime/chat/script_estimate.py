"""An estimate of a text's tokens that knows scripts, without a vocabulary (behaviour.md W1).

Owns: `estimate_tokens`. Driven by `tokens.ScriptCounter`. Standard library only; about a microsecond per word.

A tokenizer first cuts text into words, numbers, punctuation and white space, and then into pieces of its vocabulary. The
cutting is imitated here; how many pieces a word has is taken from its script: characters per token, measured against
OpenAI's o200k vocabulary on texts of our own, with the most frequent words of Chinese and Japanese, which are written
without spaces and are one token each. Texts of a sentence or more come out within a quarter of the truth.
"""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = ["estimate_tokens"]

_RUNS: Final = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+)"
    r"|(?P<digits> ?\d+)"
    r"|(?P<han>[\u3005\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<kana>[\u3040-\u30ff\uff66-\uff9f]+)"
    r"|(?P<hangul>[\u1100-\u11ff\uac00-\ud7af]+)"
    r"|(?P<cyrillic>[\u0400-\u052f]+)"
    r"|(?P<greek>[\u0370-\u03ff]+)"
    r"|(?P<arabic>[\u0600-\u06ff\u0750-\u077f]+)"
    r"|(?P<hebrew>[\u0590-\u05ff]+)"
    r"|(?P<indic>[\u0900-\u0dff]+)"
    r"|(?P<thai>[\u0e00-\u0eff]+)"
    r"|(?P<punctuation> ?[!-/:-@\[-`{-~]+[\r\n]*)"
    r"|(?P<wide>[\u2010-\u205e\u3000-\u303f\uff00-\uff65]+)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_PER_TOKEN: Final = {
    "hangul": 1.65,
    "cyrillic": 3.8,
    "greek": 2.3,
    "arabic": 2.7,
    "hebrew": 2.3,
    "indic": 2.2,
    "thai": 2.4,
}
"""Characters per token in scripts with alphabets and syllables."""
_CASES: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_HAN: Final = 0.9
"""Tokens of a Chinese character that is part of no frequent word."""
_KANA: Final = 0.8
"""Tokens of a kana that is part of no frequent word."""

_HAN_WORDS: Final = frozenset(
    (  # noqa: SIM905  # words are easier to read than a list of strings
        "你好 我们 他们 自己 什么 怎么 没有 可以 已经 现在 今天 昨天 时间 时候 问题 工作 公司 中国 世界 国家 城市 社会 经济 政府 人民 生活 学生 学校 "
        "老师 大学 教育 科学 技术 发展 研究 系统 数据 信息 网络 电脑 手机 软件 游戏 视频 图片 文件 电话 服务 客户 用户 产品 市场 企业 管理 项目 "
        "计划 方法 结果 内容 提供 使用 需要 可能 不能 应该 知道 认为 觉得 开始 进行 完成 实现 选择 帮助 谢谢 朋友 孩子 女人 男人 先生 小姐 作者 "
        "文章 新闻 记者 历史 文化 电影 音乐 北京 上海 日本 美国 香港 今年 去年 目前 以后 以前 因为 所以 但是 如果 虽然 或者 还是 就是 不是 这个 "
        "那个 这里 那里 哪里 一个 一些 一下 一样 一起 第一 最后 所有 其他 其中 非常 比较 更多 最大 重要 不同 相关 有限 主要 基本 全部 通过 根据 "
        "关于 对于 由于 为了 作为 表示 介绍 联系 支持 设计 发现 显示 处理 分析 安全 质量 价格 银行 投资 活动 比赛 消息 情况 关系 条件 环境 能力 "
        "人员 专家 医院 健康 身体 天气 晚上 下午 上午 分钟 小时 生产 部门 地区 地方 位置 方面 方式 方向 部分 单位 功能 设置 打开 关闭 点击 登录 "
        "注册 下载 安装 更新 版本 错误 成功 失败 返回 输入 搜索 查询 列表 名称 标题 类型 日期 数字 大小 颜色 黄色 里面 后面 下面 汽车 飞机 学习 "
        "语言 中文 英文 代码 程序 函数 变量 参数 电子 机器 智能 人工 助手 模型 時間 我們 沒有 問題 現在 資料 手機 視頻 圖片 電話 服務 產品 市場 "
        "開始 完成 需要 知道 學生 老師 研究 技術 提供 会社 東京 今日 昨日 仕事 場合 必要 情報 利用 商品 写真 映画 電話 学校 先生 女性 男性 説明 "
        "質問 予定 午後"
    ).split()
)
_KANA_WORDS: Final = re.compile(
    "ありがとうございます|ございました|おねがいします|こんにちは|ございます|ありがとう|しています|ください|しました|ありません|"
    "いました|なります|できます|おすすめ|それでは|ました|います|します|でした|ません|から|です|ます|した|して|という|さん|この|その|"
    "また|する|あり|そして|しかし|ない|とう|いう|こと|それ|これ|そう|より|まで|でも|など|ある|なし|もう|まず|だけ|では|には|ので|"
    "ここ|こちら|よう|でき|いる|んな|ところ|なく|って|った|れば|ため|もの|すぐ|サイト|スタ|ード|ール|ース|ント|ング|ション|ット|"
    "ック|ライ|リー|セット|ログ|コメント|サイズ|ページ|メール|カード|コード|データ|サービス|ユーザー|システム|テーブル|ック|ター|レス"
)
_EMOJI_OF_ONE: Final = frozenset("😀😂😊😍😘😁😅😉😎❤♥👍👏🙏🔥✨😭💕💪👌🎶💖💯✅⭐☀⚡✔→←↑↓●★■▶•©®™°·€£¥×÷≤≥≠±∞√")
"""Symbols that are one token."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text is; at least 1 unless it is empty."""
    tokens = 0.0
    for run in _RUNS.finditer(text):
        kind = run.lastgroup
        piece = run.group()
        if kind == "latin":
            tokens += sum(map(_word, _CASES.findall(piece))) if piece.isascii() else 1 + max(0, len(piece) - 5) / 3.5
        elif kind == "digits":
            tokens += (piece[0] == " ") + math.ceil(len(piece.lstrip()) / 3)
        elif kind == "punctuation":
            tokens += 0.9 + 0.25 * (len(piece.strip()) - 1)
        elif kind == "space":
            tokens += 0 if piece == " " else 1
        elif kind == "han":
            tokens += _han(piece)
        elif kind == "kana":
            rest = _KANA_WORDS.sub("", piece)
            tokens += _KANA * len(rest) + len(_KANA_WORDS.findall(piece))
        elif kind == "wide":
            tokens += 0.9 * len(piece)
        elif kind == "other":
            tokens += _symbol(piece)
        elif kind is not None:
            tokens += max(1.0, len(piece) / _PER_TOKEN[kind])
    return max(1, round(tokens)) if text else 0


def _word(word: str) -> float:
    """An English word, or a part of a name in code: short ones are one token, capitals take more."""
    if word.isupper():
        return max(1.0, len(word) / 3)
    return 1 + max(0, len(word) - 7) / 10


def _han(run: str) -> float:
    tokens = 0.0
    at = 0
    while at < len(run):
        if run[at : at + 2] in _HAN_WORDS:
            tokens += 1
            at += 2
        else:
            tokens += _HAN
            at += 1
    return tokens


def _symbol(character: str) -> float:
    if character in _EMOJI_OF_ONE:
        return 1.1
    code = ord(character)
    if code == 0xFE0F:  # asks for the coloured form of the character before it
        return 0.3
    if code == 0x200D or 0x1F3FB <= code <= 0x1F3FF:  # joins two, or gives a skin tone
        return 1.3
    if code >= 0x1FA70:
        return 3
    return 2.2 if code >= 0x2190 else 1.5
